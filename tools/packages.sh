# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2086 # words of the lists are split on purpose
# Sourced by tools/quickstart and tools/test: asks apt for what is missing, and only for that.

build_packages="gcc libc6-dev meson ninja-build pkg-config python3 protobuf-c-compiler libprotobuf-c-dev
    libonnx-dev libyaml-dev libminizip-dev zlib1g-dev libxxhash-dev"
test_packages="check cmake clang libclang-rt-dev clang-format python3-venv libsimde-dev chromium"
# For tools/test --coverage, and for tools/analyze.
coverage_packages="gcovr"
analyzer_packages="clang-tidy cppcheck"
# Kernels of arm are built by a cross compiler and run under an emulator; without these they are skipped.
cross_packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"

missing_packages() {
    local package
    for package in "$@"; do
        # A line for each architecture that has it.
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
    done
}

# need_packages PACKAGE…
need_packages() {
    command -v dpkg-query >/dev/null || return 0 # not Debian: meson says what it does not find
    local missing as_root="" log
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "these packages are missing, and neither root nor sudo is there to install them:" $missing >&2
            return 1
        fi
        as_root=sudo
    fi
    echo "installing" $missing
    log=$(mktemp)
    if ! { $as_root apt-get update -q &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } \
        >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        echo "apt-get could not install what is missing; see above" >&2
        return 1
    fi
    rm -f "$log"
}

# build_in FOLDER LOG MESON-OPTION…: configures the folder, anew when the options change or an earlier try was
# interrupted, and builds: all, or what $targets names. What else lies in the folder stays.
build_in() {
    local folder=$1 log=$2 stamp="$1/.options"
    shift 2
    local wanted="${CC:-} $*"
    if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        rm -rf "$folder"/meson-* "$folder/build.ninja"
        meson setup "$folder" "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; return 1; }
        echo "$wanted" >"$stamp"
    fi
    ninja -C "$folder" ${targets:-} >"$log" 2>&1 || { grep -vE '^\[[0-9]+/|^ninja: Entering' "$log" | tail -n 40 >&2; return 1; }
}
