#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the example models through dqrun and hold the results against the exact numpy evaluation.

    python3 tests/examples/test_digits.py DQRUN_BINARY

Needs numpy and onnx; the comparison with onnxruntime is skipped where that package is absent. The last line is
`N passed, N failed, N skipped`; the exit code is 1 when something failed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from digits_reference import evaluate

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FORMS = ("qoperator", "qdq", "dynamic")
WANTED_ACCURACY = 0.95
TIME_LIMIT = 60


class Skip(Exception):
    """The check cannot be made here, and why."""


def model_path(form):
    return EXAMPLES / f"digits_{form}.onnx"


class Fixture:
    """The shipped data, the reference results, and a way to run dqrun in a folder of its own."""

    def __init__(self, dqrun, folder):
        self.dqrun, self.folder = dqrun, Path(folder)
        self.images = np.load(EXAMPLES / "digits_test.npz")["image"]
        self.labels = np.load(EXAMPLES / "digits_labels.npz")["labels"]
        self.reference = {form: evaluate(model_path(form), {"image": self.images}) for form in FORMS}
        self.quantum = float(self.reference["qoperator"]["scores_scale"])

    def run(self, form, *options, inputs=EXAMPLES / "digits_test.npz"):
        """The array `scores` that dqrun writes, which must be its only output."""
        out = self.folder / "out.npz"
        out.unlink(missing_ok=True)
        command = [self.dqrun, str(model_path(form)), str(inputs), "-o", str(out), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr.strip()}"
        with np.load(out) as arrays:
            assert arrays.files == ["scores"], f"outputs {arrays.files}, expected ['scores']"
            return arrays["scores"]

    def check_accuracy(self, scores):
        accuracy = float((scores.argmax(1) == self.labels).mean())
        assert accuracy >= WANTED_ACCURACY, f"accuracy {accuracy:.3f}, expected at least {WANTED_ACCURACY}"


def check_same_bits(got, want):
    assert got.dtype == want.dtype, f"type {got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    differ = np.argwhere(got.view(np.uint32) != want.view(np.uint32))
    if len(differ):
        first = tuple(int(i) for i in differ[0])
        raise AssertionError(f"{len(differ)} of {got.size} scores differ, first at {first}: "
                             f"{got[first]}, expected {want[first]}")


def check_near(got, want, limit, share):
    """No score is further off than the limit, and no more than that share of them differs beyond float rounding."""
    assert got.dtype == want.dtype and got.shape == want.shape, f"{got.dtype} {got.shape}"
    off = np.abs(got.astype(np.float64) - want)
    assert np.all(off <= limit * 1.0001), f"largest difference {off.max()}, expected at most {limit}"  # NaN fails
    differing = float((off > 1e-4).mean())
    assert differing <= share, f"{differing:.4f} of the scores differ, expected at most {share}"


def data_is_whole(fixture):
    assert fixture.images.dtype == np.float32 and fixture.images.shape == (450, 1, 8, 8), fixture.images.shape
    assert fixture.labels.dtype == np.int64 and fixture.labels.shape == (450,), fixture.labels.shape
    assert np.bincount(fixture.labels, minlength=10).min() >= 30, "a digit is rare"
    assert len(np.unique(fixture.images.reshape(450, -1), axis=0)) > 440, "images repeat"


def reference_is_accurate(fixture):
    for form in FORMS:
        fixture.check_accuracy(fixture.reference[form]["scores"])


def onnxruntime_agrees(fixture):
    """An independent runtime gets the same from the files; one quantum allows for its float32 multiplier."""
    try:
        import onnxruntime
    except ImportError as error:
        raise Skip(str(error)) from error
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")  # its default saturates on some processors
    for form in FORMS:
        session = onnxruntime.InferenceSession(model_path(form), options, providers=["CPUExecutionProvider"])
        scores = session.run(["scores"], {"image": fixture.images})[0]
        check_near(scores, fixture.reference[form]["scores"], fixture.quantum, 0.02)
        fixture.check_accuracy(scores)


def qoperator_is_exact(fixture):
    scores = fixture.run("qoperator")
    check_same_bits(scores, fixture.reference["qoperator"]["scores"])
    fixture.check_accuracy(scores)


def threads_do_not_matter(fixture):
    for threads in ("1", "2", "3"):
        check_same_bits(fixture.run("qoperator", "--threads", threads), fixture.reference["qoperator"]["scores"])


def any_batch_size(fixture):
    """The batch is a symbolic dimension: one image, and a batch cut short, give the rows of the whole."""
    part = fixture.folder / "part.npz"
    for first, count in ((0, 1), (449, 1), (17, 33)):
        np.savez(part, image=fixture.images[first : first + count])
        want = fixture.reference["qoperator"]["scores"][first : first + count]
        check_same_bits(fixture.run("qoperator", inputs=part), want)


def outside_the_range(fixture):
    """Values far outside the calibrated range saturate; the standard's formula says how, so bits are compared."""
    images = np.random.default_rng(5).normal(0, 3, (64, 1, 8, 8)).astype(np.float32)
    images[0], images[1], images[2] = np.inf, -np.inf, 1e30
    part = fixture.folder / "part.npz"
    np.savez(part, image=images)
    want = evaluate(model_path("qoperator"), {"image": images})["scores"]
    check_same_bits(fixture.run("qoperator", inputs=part), want)


def qdq_is_near(fixture):
    """Fused or as written, the float sums before a rounding may fall on either side of it, rarely."""
    for options in ([], ["--no-fuse"]):
        scores = fixture.run("qdq", *options)
        check_near(scores, fixture.reference["qdq"]["scores"], fixture.quantum, 0.01)
        fixture.check_accuracy(scores)


def dynamic_as_written_is_exact(fixture):
    """Integer sums and single float operations an element: nothing in this graph depends on an order."""
    check_same_bits(fixture.run("dynamic", "--no-fuse"), fixture.reference["dynamic"]["scores"])


def dynamic_is_near(fixture):
    scores = fixture.run("dynamic")
    check_near(scores, fixture.reference["dynamic"]["scores"], 0.1, 0.05)
    fixture.check_accuracy(scores)


CHECKS = (data_is_whole, reference_is_accurate, onnxruntime_agrees, qoperator_is_exact, threads_do_not_matter,
          any_batch_size, outside_the_range, qdq_is_near, dynamic_as_written_is_exact, dynamic_is_near)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        fixture = Fixture(sys.argv[1], folder)
        for check in CHECKS:
            try:
                check(fixture)
                counts["passed"] += 1
            except Skip as reason:
                counts["skipped"] += 1
                print(f"skipped {check.__name__}: {reason}")
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                counts["failed"] += 1
                print(f"FAILED {check.__name__}: {error}")
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
