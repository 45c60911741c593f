"""Whether the frames of zstd files carry checksums. The format: RFC 8878, section 3.1."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenrecords.files.remote import AnyPath

_FRAME: Final = 0xFD2FB528
_SKIPPABLE: Final = range(0x184D2A50, 0x184D2A60)
_RLE: Final = 1


def lacks_checksum(path: AnyPath) -> bool:
    """True if a frame of the file has no checksum, so that damage may read as other text.

    Only the headers of frames and blocks are looked at; from damage on, nothing is said.
    """
    with path.open("rb") as stream:
        try:
            while head := stream.read(4):
                magic = int.from_bytes(head, "little")
                if magic in _SKIPPABLE:
                    stream.seek(_number(stream, 4), 1)
                elif magic != _FRAME:
                    return False
                elif not _passed(stream):
                    return True
        except EOFError:
            pass
    return False


def _passed(stream: IO[bytes]) -> bool:
    """Go to the end of a frame; False where it has no checksum."""
    descriptor = _number(stream, 1)
    if not descriptor >> 2 & 1:
        return False
    is_single = descriptor >> 5 & 1
    size_bytes = (is_single, 2, 4, 8)[descriptor >> 6]
    stream.seek((not is_single) + (0, 1, 2, 4)[descriptor & 3] + size_bytes, 1)
    is_last = 0
    while not is_last:
        block = _number(stream, 3)
        is_last, kind, size = block & 1, block >> 1 & 3, block >> 3
        stream.seek(1 if kind == _RLE else size, 1)
    stream.seek(4, 1)
    return True


def _number(stream: IO[bytes], count: int) -> int:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return int.from_bytes(data, "little")
