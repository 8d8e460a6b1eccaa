# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each status of the C library, each also a subclass of the built-in exception that fits."""

from __future__ import annotations

from ._native import ffi, lib


class Error(Exception):
    """Base class of all errors of dqrun.

    ``str(error)`` is the message of the C library: the fault, the value found, the value expected, and the place.

    Attributes:
        status: name of the C status, such as ``"DQ_BAD_INPUT"``.
    """

    status = "DQ_INTERNAL"


class InvalidArgument(Error, ValueError):
    """The call itself is wrong: an unknown name, an impossible option."""

    status = "DQ_INVALID_ARGUMENT"


class BadModel(Error, ValueError):
    """The model breaks the format or its schemas, or a node does not fit the shapes or values that it got."""

    status = "DQ_BAD_MODEL"


class BadInput(Error, ValueError):
    """An input array is missing, or its type or shape is not what the model declares."""

    status = "DQ_BAD_INPUT"


class Unsupported(Error, NotImplementedError):
    """Valid ONNX that this build of dqrun has no implementation for."""

    status = "DQ_UNSUPPORTED"


class OutOfMemory(Error, MemoryError):
    """Memory ran out, or a bound of :class:`dqrun.Limits` was passed."""

    status = "DQ_OUT_OF_MEMORY"


class InternalError(Error, RuntimeError):
    """A bug in dqrun; please report it with the message."""

    status = "DQ_INTERNAL"


class IOFailed(Error, OSError):
    """A file could not be written."""

    status = "DQ_IO"


class Cancelled(Error, InterruptedError):
    """:meth:`dqrun.Session.cancel` ended the run."""

    status = "DQ_CANCELLED"


_BY_STATUS: dict[int, type[Error]] = {
    lib.DQ_INVALID_ARGUMENT: InvalidArgument,
    lib.DQ_BAD_MODEL: BadModel,
    lib.DQ_BAD_INPUT: BadInput,
    lib.DQ_UNSUPPORTED: Unsupported,
    lib.DQ_OUT_OF_MEMORY: OutOfMemory,
    lib.DQ_INTERNAL: InternalError,
    lib.DQ_IO: IOFailed,
    lib.DQ_CANCELLED: Cancelled,
}


def error_of(status: int, message: bytes) -> Error:
    """The exception for a status of the C library and its message."""
    return _BY_STATUS.get(status, InternalError)(message.decode("utf-8", "replace"))


def check(status: int, err: "ffi.CData") -> None:
    """Raises the exception for `status` with the message in the ``dq_error *`` `err`; returns when it is DQ_OK."""
    if status:
        raise error_of(status, ffi.string(err.message))
