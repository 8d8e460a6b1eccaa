# SPDX-License-Identifier: Apache-2.0
"""How far an engine's outputs are from those of the model as written.

The measure is the signal-to-quantization-noise ratio, SQNR = 10 log10(sum(reference^2) / sum((output - reference)^2)), in decibels; of
several outputs, the smallest. Float32 sums in another order give 110 to 140 dB, bfloat16 some 40 to 50, 8-bit activations 20 to 40."""

import math

import numpy as np

NOISE_OF_FLOAT32 = 80  # dB: engines above it differ by less than the order of float32 sums can change
EQUAL = 3  # dB


def of_output(reference, got):
    """SQNR of one output in dB: infinite where both are equal, -infinite where the shape is another or a value is not finite."""
    reference, got = np.asarray(reference), np.asarray(got)
    if reference.shape != got.shape:
        return -math.inf
    if reference.dtype.kind not in "biuf":
        return math.inf if np.array_equal(reference, got) else -math.inf
    reference, got = reference.astype(np.float64), got.astype(np.float64)
    special = ~np.isfinite(reference)
    if not np.array_equal(reference[special], got[special], equal_nan=True):
        return -math.inf
    reference, got = reference[~special], got[~special]
    noise, signal = np.sum((got - reference) ** 2), np.sum(reference**2)
    if not np.isfinite(noise):
        return -math.inf
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf


def sqnr(reference, got):
    """The smallest SQNR of a model's outputs, lists of arrays in the same order."""
    if len(reference) != len(got):
        return -math.inf
    return min((of_output(a, b) for a, b in zip(reference, got)), default=math.inf)


def is_equal(peer, ours):
    """Whether a peer is as accurate as dqrun: at most 3 dB less, where values above 80 dB, float32's own noise, count as 80."""
    return min(peer, NOISE_OF_FLOAT32) >= min(ours, NOISE_OF_FLOAT32) - EQUAL
