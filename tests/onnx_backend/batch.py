# SPDX-License-Identifier: Apache-2.0
"""Write batch files: thousands of one-node cases in one file, which `dqrun-conformance --batch` runs.

    with batch.Writer("cases.dqb") as writer:
        writer.add("quantize_u8_ties", model, [x, scale, zero_point], [y])

docs/dqrun-conformance.md has the layout. Model, inputs and outputs are the messages of the onnx package, or bytes that
hold them, or (for values) numpy arrays.
"""

import struct

MAGIC = b"DQCASES1"
RTOL = 1e-3
ATOL = 1e-7


def model_bytes(model):
    return model if isinstance(model, bytes) else model.SerializeToString(deterministic=True)


def value_bytes(value):
    """A TensorProto as bytes. A numpy array of an ml_dtypes type becomes the ONNX type of that name."""
    if isinstance(value, bytes):
        return value
    if not hasattr(value, "SerializeToString"):
        from onnx import numpy_helper  # only arrays need the package
        value = numpy_helper.from_array(value)
    return value.SerializeToString(deterministic=True)


def sized(data):
    return struct.pack("<Q", len(data)) + data


class Writer:
    """Writes records as they come. A name may be used once, so that a report names one case."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(MAGIC)
        self.names = set()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __len__(self):
        return len(self.names)

    def add(self, name, model, inputs, outputs, rtol=RTOL, atol=ATOL):
        """Append one case. Inputs and outputs stand in the order of the model's; tolerances are for floats."""
        if name in self.names:
            raise ValueError(f"the case {name!r} is in the file already")
        if not outputs:
            raise ValueError(f"the case {name!r} has no output to compare with")
        encoded = name.encode()
        body = [struct.pack("<I", len(encoded)), encoded, sized(model_bytes(model)),
                struct.pack("<ddII", rtol, atol, len(inputs), len(outputs))]
        body += [sized(value_bytes(value)) for value in [*inputs, *outputs]]
        self.file.write(sized(b"".join(body)))
        self.names.add(name)

    def close(self):
        self.file.close()


def read(path):
    """Yield (name, model, inputs, outputs, rtol, atol) of each record, all but the numbers as bytes."""
    with open(path, "rb") as file:
        data = memoryview(file.read())
    if data[:8] != MAGIC:
        raise ValueError(f"{path} does not begin with {MAGIC.decode()}")
    at = 8

    def take(size):
        nonlocal at
        part = data[at:at + size]
        if len(part) != size:
            raise ValueError(f"{path} is cut off at byte {at}")
        at += size
        return bytes(part)

    def take_sized():
        return take(struct.unpack("<Q", take(8))[0])

    while at < len(data):
        take(8)
        name = take(struct.unpack("<I", take(4))[0]).decode()
        model = take_sized()
        rtol, atol, inputs, outputs = struct.unpack("<ddII", take(24))
        values = [take_sized() for _ in range(inputs + outputs)]
        yield name, model, values[:inputs], values[inputs:], rtol, atol
