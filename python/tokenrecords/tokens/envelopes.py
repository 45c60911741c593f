"""Envelopes of token fields as text: `ngtok1:i32:<base64>` for ids, `ngtok1:f64:<base64>` for log-probs."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tokenrecords.tokens.arrays import Fault, IdArray, LogProbArray, shown
from tokenrecords.tokens.names import ID_FIELDS

_KIND: Final = "ngtok"  # of any version: one that is not known is no list of ids either
_HEAD: Final = "ngtok1:"
_DTYPES: Final[dict[str, np.dtype[Any]]] = {"i32": np.dtype("<i4"), "f64": np.dtype("<f8")}


def is_envelope(value: Any) -> bool:
    """True for a text that says it is an envelope, whole or broken."""
    return isinstance(value, str) and value.startswith(_KIND)


def opened(name: str, value: Any) -> Any:
    """What an envelope in a token field holds; any other value as it is.

    Returns:
        A read-only array of shape `(n,)`: int32 for ids, float64 for log-probs.

    Raises:
        Fault: The envelope is not one of this field's, or broken.
    """
    return _open(name, value) if is_envelope(value) else value


def _open(name: str, text: str) -> IdArray | LogProbArray:
    kind = "i32" if name in ID_FIELDS else "f64"
    found, _, data = text.removeprefix(_HEAD).partition(":")
    dtype = _DTYPES[kind]
    needed = f"{_HEAD}{kind}:<base64> of whole little-endian numbers is needed"
    if found != kind:
        raise Fault(shown(text), needed)
    try:
        packed = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise Fault(shown(text), needed) from None
    if len(packed) % dtype.itemsize:
        raise Fault(shown(text), needed)
    array: npt.NDArray[Any] = np.frombuffer(packed, dtype).astype(dtype.newbyteorder("="), copy=False)
    return array
