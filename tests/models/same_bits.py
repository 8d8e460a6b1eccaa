# SPDX-License-Identifier: Apache-2.0
"""Holds the outputs of whole models against each other, to the bit, all NaNs being one: every level of instruction sets that
the machine has, with 1 and with 2 threads, against portable C with one thread.

    same_bits.py DQRUN MODEL:INPUTS… | FOLDER…

DQRUN is the program; dqrun-conformance stands beside it. FOLDER holds models as make_models.py makes them, of which the first
input is taken. Prints a line for each model, with a hash of its outputs, and ends with "N passed, N failed, N skipped"; a test is a
model at a level and number of threads."""

import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

THREADS = (1, 2)


def outputs_hash(dqrun, model, inputs, isa, threads):
    """A hash over names, types, shapes and bytes of all outputs, or the sentence of a refusal."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.npz"
        command = [dqrun, model, inputs, "--isa", isa, "--threads", str(threads), "-o", out]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"exit code {done.returncode}: {done.stderr.strip()}"
        digest = hashlib.sha256()
        with np.load(out) as arrays:
            for name in sorted(arrays.files):
                values = arrays[name]
                if values.dtype.kind == "f":  # sign and payload of a NaN may depend on the level
                    values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
                digest.update(f"{name} {values.dtype} {values.shape} ".encode())
                digest.update(values.tobytes())
    return digest.hexdigest()[:16]


def pairs(places):
    for place in places:
        if ":" in place:
            model, inputs = place.rsplit(":", 1)
            yield pathlib.Path(model), pathlib.Path(inputs)
        else:
            for model in sorted(pathlib.Path(place).rglob("*.onnx")):
                yield model, model.parent / "input_0.npz"


def main():
    parser = argparse.ArgumentParser(description="Hold outputs of whole models at every level against portable C.")
    parser.add_argument("dqrun", type=pathlib.Path)
    parser.add_argument("places", nargs="+", metavar="MODEL:INPUTS|FOLDER")
    options = parser.parse_args()
    conformance = options.dqrun.with_name("dqrun-conformance")
    levels = subprocess.run([str(conformance), "--list-isa"], capture_output=True, text=True, check=True).stdout.split()
    settings = [(isa, threads) for isa in levels for threads in THREADS]
    passed = failed = 0
    for model, inputs in pairs(options.places):
        hashes = [outputs_hash(options.dqrun, model, inputs, *setting) for setting in settings]
        wrong = [f"{isa}, {threads} thread(s): {got}" for (isa, threads), got in zip(settings, hashes)
                 if got != hashes[0] or "exit code" in got]
        passed += len(settings) - len(wrong)
        failed += len(wrong)
        print(f"{'/'.join(model.parts[-2:]):40} {hashes[0]}", *(f"FAILED: {w}" for w in wrong), sep="  ", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
