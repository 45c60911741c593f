"""What makes a buffered file of whatever reads."""

from __future__ import annotations

import io
from typing import IO, Any, Final

# Large enough that a record's line is gathered from few pieces, small against the memory of one record.
BUFFER_SIZE: Final = 1 << 20


class OnlyReads(io.RawIOBase):
    """A file of which no more is known than that it has `read`: pyarrow's give no lines."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what the buffer holds at most."""
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seekable(self) -> bool:
        """True where the file says so."""
        try:
            return self._stream.seekable()
        except AttributeError:
            return False

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go there."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Where it stands."""
        return self._stream.tell()
