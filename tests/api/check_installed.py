# SPDX-License-Identifier: Apache-2.0
"""Installs a build, compiles the program of README.md and the example of the public header against it, as a user would, and runs the
commands of the tutorials that need an installed library.

usage: check_installed.py BUILD   (from the root of the sources)
The last line is `N passed, N failed, N skipped`.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from pages import MATCHES, output_lines, page_steps  # noqa: E402

TUTORIALS = ["docs/tutorials/embed.md", "docs/tutorials/decoder.md"]
EXAMPLES = ["build", "decoder", "inspect", "memory", "run", "threads"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def program_of_readme():
    return re.search(r"```c\n(.*?)```", pathlib.Path("README.md").read_text(), re.DOTALL).group(1)


def examples_of_header():
    """The code in the header's comments, one text for each block that is indented."""
    header = pathlib.Path("include/dqrun/dqrun.h").read_text()
    return [re.sub(r"^ \*", "", text, flags=re.MULTILINE) for text in re.findall(r"((?:^ \*     .*\n)+)", header, re.MULTILINE)]


def program_of_header():
    """All examples of the header. The one that builds a model and the one that runs it do so; the others are compiled,
    as bodies of functions whose parameters are what they use."""
    examples = examples_of_header()
    builds, = [text for text in examples if "dq_builder_create" in text]
    runs, = [text for text in examples if "dq_model_load(" in text and "printf" in text]
    others = [text for text in examples if text not in (builds, runs)]
    assert others
    functions = "\n".join(f"""void example_{i}({PARAMETERS});
void example_{i}({PARAMETERS})
{{
    dq_error err;
    {UNUSED}
{text}
}}""" for i, text in enumerate(others))
    return f"""#include <dqrun/dqrun.h>
#include <stdio.h>
int print_output(void *arg, const dq_value_info *output);
int print_output(void *arg, const dq_value_info *output)
{{
    (void)arg;
    return puts(output->name) < 0;
}}
{functions}
static int build(const char *path)
{{
    dq_model *model = NULL;
    dq_tensor *scale = NULL;
    dq_error err;
    dq_tensor_create(DQ_FLOAT, 0, NULL, &scale, &err);
    *(float *)dq_tensor_mutable_data(scale) = 0.5f;
{builds}
    dq_status status = dq_model_save(model, path, &err);
    dq_model_free(model);
    dq_tensor_free(scale);
    return status;
}}
int main(void)
{{
    if (build("model.onnx"))
        return 1;
{runs.replace('session, "y"', "session, NULL").replace("static float data[4];", "static float data[4] = {1.5f, 2, 3, 4};")}
    return 0;
}}
"""


# What the header's examples use and do not declare.
NAMES = {"session": "dq_session *", "model": "dq_model *", "cache": "dq_tensor *", "token": "dq_tensor *",
         "ones": "dq_tensor *", "logits": "const dq_tensor *"}
PARAMETERS = ", ".join(kind + name for name, kind in NAMES.items())
UNUSED = " ".join(f"(void){name};" for name in NAMES)


def main():
    root = pathlib.Path.cwd()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run(["meson", "install", "-C", sys.argv[1], "--no-rebuild", "--quiet", "--destdir", folder],
                       check=True)
        pc, = folder.rglob("dqrun.pc")
        shared, = folder.rglob("libdqrun.so")
        environment = os.environ | {"PKG_CONFIG_PATH": str(pc.parent), "LD_LIBRARY_PATH": str(shared.parent)}
        # pkg-config finds the file, not the place that the library was installed for
        define = f"--define-variable=prefix={folder}{pkg_config(environment, '--variable=prefix')[0]}"

        def run(*command, where=root):
            return subprocess.run(command, check=True, cwd=where, env=environment, stdout=subprocess.PIPE, text=True).stdout

        def as_in_readme(name, language, flags):
            source, program = folder / "readme.c", folder / name
            source.write_text(program_of_readme())
            run(*language, *WARNINGS, source, "-o", program, *flags)
            lines = run(program).splitlines()
            assert [line.split(":")[0] for line in lines] == list("0123456789"), lines

        def as_in_header(*language):
            source, program = folder / "header.c", folder / "header"
            source.write_text(program_of_header())
            # the examples declare variables to show them
            run(*language, *WARNINGS, "-Wno-unused", "-Wno-unused-but-set-variable", "-Wno-unused-parameter", source, "-o", program,
                *shared_flags)
            assert run(program, where=folder) == "3\n"

        def pages_and_completions():
            """The manual pages and completions are those that the installed command prints."""
            dqrun, = (path for path in folder.rglob("dqrun") if path.parent.name == "bin")
            share = dqrun.parents[1] / "share"
            for path, command in (("man/man1/dqrun.1", ["man"]), ("bash-completion/completions/dqrun", ["completion", "bash"]),
                                  ("zsh/site-functions/_dqrun", ["completion", "zsh"]),
                                  ("fish/vendor_completions.d/dqrun.fish", ["completion", "fish"])):
                assert (share / path).read_text() == run(dqrun, *command), path
            assert (share / "man/man1/dqrun-conformance.1").read_text().startswith(".\\\"")
            manual = (share / "man/man3/libdqrun.3").read_text()
            functions = re.findall(r"^DQ_API .*?\b(dq_\w+)\(", pathlib.Path("include/dqrun/dqrun.h").read_text(), re.MULTILINE)
            missing = [name for name in functions if not re.search(rf"^\.B .*\b{name}\(", manual, re.MULTILINE)]
            assert len(functions) > 50 and not missing, missing

        def by_pkg_config():
            programs = folder / "by-pkg-config"
            programs.mkdir()
            for name in EXAMPLES:
                run("cc", "-std=c11", *WARNINGS, root / "examples" / "c" / f"{name}.c", "-o", programs / name, "-pthread",
                    *shared_flags)
                # the language that many programs which embed a C library are written in
                run("clang++", "-std=c++17", "-x", "c++", root / "examples" / "c" / f"{name}.c", "-fsyntax-only",
                    *(flag for flag in shared_flags if flag.startswith("-I")))
            run_examples(programs)

        # for those who cannot pass the prefix to pkg-config
        moved = folder / "pkgconfig"
        moved.mkdir()
        (moved / "dqrun.pc").write_text(re.sub("^prefix=", f"prefix={folder}", pc.read_text(), flags=re.MULTILINE))

        def tutorial(name):
            """The page's commands print what it shows."""
            where = folder / pathlib.Path(name).stem
            where.mkdir()
            (where / "examples").symlink_to(root / "examples")
            variables = environment | {"PKG_CONFIG_PATH": str(moved), "CMAKE_PREFIX_PATH": f"{folder}{prefix}"}
            for kind, what, content in page_steps((root / name).read_text()):
                if kind == "file":
                    (where / what).write_text(content)
                    continue
                done = subprocess.run(["bash", "-c", what], check=False, cwd=where, env=variables, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
                got = output_lines(done.stdout, done.returncode)
                assert MATCHES[kind](content, got), f"{what}: got\n" + "\n".join(got) + "\nexpected\n" + "\n".join(content)

        def by_meson():
            programs = folder / "by-meson"
            run("meson", "setup", programs, root / "examples" / "c", f"--pkg-config-path={moved}", "--werror")
            run("ninja", "-C", programs)
            run_examples(programs)

        def by_cmake():
            programs = folder / "by-cmake"
            run("cmake", "-S", root / "examples" / "c", "-B", programs, f"-DCMAKE_PREFIX_PATH={folder}{prefix}")
            run("cmake", "--build", programs)
            run_examples(programs)

        def run_examples(programs):
            """What the examples print stands in the tree."""
            digits = "examples/digits_qdq.onnx"
            arguments = {"build": [folder / "built.onnx"], "inspect": [digits, "2"], "memory": [digits], "run": [digits],
                         "threads": [digits, "3"]}
            for name in EXAMPLES:
                expected = (root / "tests" / "examples" / "c" / f"{name}.txt").read_text()
                printed = run(programs / name, *arguments.get(name, []))
                if name == "memory":  # bytes differ between compilers
                    printed = re.sub(r"\d+ KiB", "N KiB", printed)
                if name == "inspect":  # what follows depends on the processor: tests/examples/test_inspect.py
                    printed = printed.partition("a session for")[0]
                assert printed == expected, f"{name} prints\n{printed}\nexpected\n{expected}"

        prefix = pkg_config(environment, "--variable=prefix")[0]
        shared_flags = pkg_config(environment, define, "--cflags", "--libs")
        static_flags = [flag.replace("-ldqrun", "-l:libdqrun.a")
                        for flag in pkg_config(environment, define, "--static", "--cflags", "--libs")]
        tests = {
            "C, shared": lambda: as_in_readme("c", ["cc", "-std=c11"], shared_flags),
            "C++, shared": lambda: as_in_readme("cpp", ["clang++", "-x", "c++"], shared_flags),
            "C, static": lambda: as_in_readme("static", ["cc", "-std=c11"], static_flags),
            "manual pages and completions": pages_and_completions,
            "header, C11": lambda: as_in_header("cc", "-std=c11"),
            "header, C++11": lambda: as_in_header("clang++", "-std=c++11", "-x", "c++"),
            "header, C++20": lambda: as_in_header("clang++", "-std=c++20", "-x", "c++"),
            "examples by pkg-config": by_pkg_config,
            "examples by meson": by_meson,
            "examples by CMake": by_cmake,
            **{name: lambda name=name: tutorial(name) for name in TUTORIALS},
        }
        for name, test in tests.items():
            try:
                test()
                passed += 1
            except (AssertionError, subprocess.CalledProcessError) as why:
                print(f"FAILED: {name}: {why}")
                failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


def pkg_config(environment, *arguments):
    return subprocess.run(["pkg-config", *arguments, "dqrun"], check=True, env=environment, stdout=subprocess.PIPE,
                          text=True).stdout.split()


if __name__ == "__main__":
    sys.exit(main())
