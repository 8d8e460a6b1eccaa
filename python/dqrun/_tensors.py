# SPDX-License-Identifier: Apache-2.0
"""Python values to tensors of the C library, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dtypes
from ._errors import BadInput, check
from ._native import ffi, lib


class Tensor:
    """A ``dq_tensor`` with all that its memory depends on. Freed with the object.

    Attributes:
        native: the ``dq_tensor *``.
    """

    __slots__ = ("native", "_keep")

    def __init__(self, native: Any, keep: Any = None) -> None:
        self.native = ffi.gc(native, lib.dq_tensor_free)
        self._keep = keep

    def release(self) -> Any:
        """The ``dq_tensor *``, which the caller owns from now on; `_keep` must outlive it."""
        native, self.native = self.native, None
        return ffi.gc(native, None)


def _torch_bits(value: Any) -> np.ndarray[Any, Any]:
    """The array of a torch tensor of a type that DLPack and numpy do not share (bfloat16, float8): a view of its bits."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    name = str(value.dtype).removeprefix("torch.")
    bits = value.detach().view({1: torch.uint8, 2: torch.int16}[value.element_size()])
    import ml_dtypes

    result: np.ndarray[Any, Any] = np.from_dlpack(bits).view(getattr(ml_dtypes, name))
    return result


def as_array(value: Any, dtype: int) -> np.ndarray[Any, Any]:
    """`value` as a numpy array, without a copy where it is one or speaks DLPack.

    Numbers, lists and tuples become arrays of the ONNX type `dtype`; arrays keep the type that they have."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        if type(value).__module__.partition(".")[0] == "torch" and value.is_floating_point() and value.element_size() < 4 \
                and str(value.dtype) != "torch.float16":
            return _torch_bits(value)
        if getattr(value, "requires_grad", False):
            value = value.detach()
        return np.from_dlpack(value)
    if hasattr(value, "__array__"):
        return np.asarray(value)
    if dtype == lib.DQ_STRING:
        return np.asarray(value, dtype=object)
    return np.asarray(value, dtype=None if dtype == lib.DQ_UNDEFINED else _dtypes.to_numpy(dtype))


def _dims(shape: tuple[int, ...]) -> Any:
    return ffi.new("int64_t[]", shape) if shape else ffi.NULL


def _string_tensor(array: np.ndarray[Any, Any]) -> Tensor:
    err, out = ffi.new("dq_error *"), ffi.new("dq_tensor **")
    check(lib.dq_tensor_create(lib.DQ_STRING, array.ndim, _dims(array.shape), out, err), err)
    tensor = Tensor(out[0])
    for i, item in enumerate(array.reshape(-1).tolist()):
        if not isinstance(item, (str, bytes)):
            raise BadInput(f"element {i} of an array of strings is {type(item).__name__}, expected str or bytes")
        text = item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item
        check(lib.dq_tensor_set_string(tensor.native, i, text, len(text), err), err)
    return tensor


def wrap(array: np.ndarray[Any, Any], *, writable: bool = False) -> Tensor:
    """A tensor over the memory of an array, which it keeps alive; over a copy where the array is not C-contiguous, aligned and of the
    machine's byte order, or has elements of less than a byte. `writable` refuses arrays that would be copied."""
    dtype = _dtypes.from_numpy(array.dtype)
    if dtype == lib.DQ_UNDEFINED:
        raise BadInput(f"an array has dtype {array.dtype}, for which ONNX has no type")
    if dtype == lib.DQ_STRING:
        if writable:
            raise BadInput("strings cannot be written into an array of the caller")
        return _string_tensor(array)
    bits = _dtypes.BITS[dtype]
    flags = array.flags
    if writable and not (flags.carray and array.dtype.isnative and bits >= 8):
        raise BadInput(f"results cannot be written into an array of dtype {array.dtype} with strides {array.strides}: "
                       "expected a writable, aligned, C-contiguous array in native byte order of a type of at least 8 bits")
    shape, data = array.shape, array
    if bits < 8:
        data = _dtypes.pack(np.ascontiguousarray(array), bits)
    elif not (flags.c_contiguous and flags.aligned and array.dtype.isnative):
        data = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)
    if bits >= 8 and data.dtype.kind == "V" or data.dtype.isbuiltin == 2:  # ml_dtypes has no buffer protocol
        data = data.view(np.uint8 if bits == 8 else np.uint16)
    memory = ffi.from_buffer(data) if data.size else ffi.NULL
    size = data.nbytes
    if not size:
        memory = ffi.new("char[16]")
    err, out = ffi.new("dq_error *"), ffi.new("dq_tensor **")
    make = lib.dq_tensor_wrap if writable else lib.dq_tensor_wrap_const
    check(make(dtype, len(shape), _dims(shape), memory, size, out, err), err)
    return Tensor(out[0], (memory, data))


def to_native(value: Any, kind: int, dtype: int, item_kind: int) -> Tensor:
    """The tensor, sequence or optional for a Python value: an array or what becomes one, a list of them, or None."""
    if kind == lib.DQ_KIND_SEQUENCE:
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            raise BadInput(f"a sequence is given as {type(value).__name__}, expected a list of arrays")
        items = [wrap(as_array(item, dtype)) for item in value]
        return _own(lib.dq_sequence_create, (dtype, len(items)), items)
    if kind == lib.DQ_KIND_OPTIONAL:
        inside = [] if value is None else [to_native(value, item_kind, dtype, lib.DQ_KIND_TENSOR)]
        return _own(lib.dq_optional_create, (item_kind, dtype), inside)
    return wrap(as_array(value, dtype))


def _own(make: Any, arguments: tuple[int, ...], items: list[Tensor]) -> Tensor:
    """Has the C library make a sequence or an optional, which owns the items after that."""
    err, out = ffi.new("dq_error *"), ffi.new("dq_tensor **")
    if make is lib.dq_sequence_create:
        inside = ffi.new("dq_tensor *[]", [item.native for item in items])
    else:
        inside = items[0].native if items else ffi.NULL
    check(make(*arguments, inside, out, err), err)
    keep = [item._keep for item in items]
    for item in items:
        item.release()
    return Tensor(out[0], keep)


def shape_of(native: Any) -> tuple[int, ...]:
    """The dimensions of a tensor."""
    rank = lib.dq_tensor_rank(native)
    return tuple(ffi.unpack(lib.dq_tensor_dims(native), rank)) if rank else ()


def array_over(tensor: Any, data: Any, size: int, dtype: int, shape: Any) -> np.ndarray[Any, Any]:
    """An array over the data of a tensor of whole bytes, which it frees when it goes."""
    numpy = _dtypes.to_numpy(dtype)
    if not size:
        lib.dq_tensor_free(tensor)
        return np.empty(shape, numpy)
    memory = ffi.buffer(ffi.gc(data, lambda _, free=lib.dq_tensor_free: free(tensor)), size)
    if numpy.isbuiltin == 1:
        return np.frombuffer(memory, numpy).reshape(shape)
    return np.frombuffer(memory, np.uint8).view(numpy).reshape(shape)


def to_python(native: Any) -> Any:
    """The Python value of a tensor, copied: an array; a list for a sequence; None for an optional that is empty. Strings become an array
    of str objects."""
    kind = lib.dq_tensor_kind(native)
    if kind == lib.DQ_KIND_SEQUENCE:
        return [to_python(lib.dq_tensor_item(native, i)) for i in range(lib.dq_tensor_count(native))]
    if kind == lib.DQ_KIND_OPTIONAL:
        item = lib.dq_tensor_item(native, 0)
        return to_python(item) if item else None
    dtype = lib.dq_tensor_dtype(native)
    shape = shape_of(native)
    if dtype == lib.DQ_STRING:
        length = ffi.new("size_t *")
        texts = np.empty(lib.dq_tensor_count(native), object)
        for i in range(texts.size):
            text = lib.dq_tensor_string(native, i, length)
            texts[i] = ffi.buffer(text, length[0])[:].decode("utf-8", "surrogateescape")
        return texts.reshape(shape)
    bits = _dtypes.BITS[dtype]
    data, size = lib.dq_tensor_data(native), lib.dq_tensor_size(native)
    if bits < 8:
        packed = np.frombuffer(ffi.buffer(data, size), np.uint8)
        return _dtypes.unpack(packed, lib.dq_tensor_count(native), dtype).reshape(shape)
    raw = np.frombuffer(ffi.buffer(data, size), np.uint8).copy() if size else np.empty(0, np.uint8)
    return raw.view(_dtypes.to_numpy(dtype)).reshape(shape)
