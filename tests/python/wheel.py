# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel in build-wheel/dist: from a source distribution if all changes are committed, otherwise from the work tree."""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    print(done.stdout)
    if done.returncode:
        raise AssertionError(f"{command[0]} ended with exit code {done.returncode}")
    return done.stdout


def unpacked_sdist(folder):
    """The unpacked source distribution, or None: outside of git, and with changes that are not committed, there is none to test."""
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False)
    if status.returncode or status.stdout:
        return None
    tools = folder / "tools"
    run(sys.executable, "-m", "venv", tools)
    run(tools / "bin" / "python", "-m", "pip", "install", "-q", "build")
    run(tools / "bin" / "python", "-m", "build", "-q", "--sdist", "-o", folder / "dist", ROOT)
    archive, = (folder / "dist").glob("dqrun-*.tar.gz")
    shutil.rmtree(folder / "source", ignore_errors=True)
    shutil.unpack_archive(archive, folder / "source", filter="data")
    source, = (folder / "source").iterdir()
    return source


def build_wheel(python):
    folder = ROOT / "build-wheel"
    shutil.rmtree(folder / "dist", ignore_errors=True)
    source = unpacked_sdist(folder)
    print("the wheel is built from", "a source distribution" if source else "the work tree")
    # Sources of another folder would confuse the incremental build of the work tree.
    build = folder / ("build-sdist" if source else "build")
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder / "dist", "-Cbuild-dir=" + str(build), source or ROOT)
    wheel, = (folder / "dist").glob("dqrun-*.whl")
    return wheel
