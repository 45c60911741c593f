"""Headers that go from end to end, and those that do not; bodies that are compressed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from multidict import CIMultiDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# RFC 9110, section 7.6.1, and what each side says of its own body.
_HOP: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OWN: Final = frozenset({"authorization", "x-api-key"})
_EITHER: Final = zlib.MAX_WBITS | 32  # gzip's header or zlib's
# Bodies of requests that aiohttp has decompressed when they are read.
_UNPACKED: Final = frozenset({"gzip", "deflate", "br", "zstd"})


def end_to_end(headers: Mapping[str, str], *, without: Iterable[str] = ()) -> CIMultiDict[str]:
    """The headers that a gateway passes on."""
    connection = (value for name, value in headers.items() if name.lower() == "connection")
    named = {name.strip().lower() for value in connection for name in value.split(",")}
    left_out = {*_HOP, *named, *without}
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out)


def to_engine(headers: Mapping[str, str], *, engine_key: str | None, keep_key: bool, is_read: bool) -> CIMultiDict[str]:
    """The headers of a request, with the key that the engine wants.

    Args:
        headers: What the agent sent.
        engine_key: The engine's key, None where it gets the agent's.
        keep_key: False where the agent's key is not meant for the engine.
        is_read: True where the answer is read here: it must not come compressed.
    """
    without = set() if keep_key and engine_key is None else set(_OWN)
    if headers.get("content-encoding", "").lower() in _UNPACKED:
        without.add("content-encoding")
    if is_read:
        without.add("accept-encoding")
    kept = end_to_end(headers, without=without)
    if engine_key is not None:
        kept["authorization"] = f"Bearer {engine_key}"
    if is_read:
        kept["accept-encoding"] = "identity"
    return kept


class Decoder:
    """Decompresses an answer that an engine compressed although nobody asked for it.

    Raises:
        ValueError: It is compressed in another way than as gzip or deflate.
    """

    def __init__(self, encoding: str) -> None:
        if encoding not in ("", "identity", "gzip", "deflate"):
            raise ValueError(f"the answer is compressed by {encoding}, which was not asked for")
        self._encoding = encoding
        self._inflate = zlib.decompressobj(_EITHER) if encoding in ("gzip", "deflate") else None

    def feed(self, part: bytes) -> bytes:
        """What the next bytes say.

        Raises:
            ValueError: They are not compressed so.
        """
        if self._inflate is None:
            return part
        try:
            return self._inflate.decompress(part)
        except zlib.error as problem:
            raise ValueError(f"the answer is not {self._encoding}: {problem}") from None

    def end(self) -> None:
        """Take note that no more bytes come.

        Raises:
            ValueError: More are needed.
        """
        if self._inflate is not None and not self._inflate.eof:
            raise ValueError(f"the answer is not {self._encoding}: it breaks off")
