"""The footer of a Parquet file, with a checksum: Parquet itself has one for pages only.

Without it, a flipped bit can give a column another name, or make missing what is there. The checksum stands in the
field that is kept for extensions (BinaryProtocolExtensions.md of parquet-format), which other readers skip.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from tokenrecords.files.thrift import BINARY, Field, read_struct, written

if TYPE_CHECKING:
    import pyarrow as pa

    from tokenrecords.files.thrift import Struct

MAGIC: Final = b"PAR1"
_EXTENSION: Final = 32_767
_MARK: Final = b"tokenrecords crc32 "
_SIZE: Final = 4 + 1 + len(_MARK) + 4 + 1  # the field's head, its length, what it holds, and the end of the struct


class DamagedFooterError(ValueError):
    """A footer whose checksum is another one."""


def sealed(footer: Struct) -> bytes:
    """The end of a file: its footer with a checksum, the length, and the magic bytes."""
    checksum = zlib.crc32(written(footer)[:-1]).to_bytes(4, "little")
    data = written({**footer, _EXTENSION: Field(BINARY, _MARK + checksum)})
    return data + len(data).to_bytes(4, "little") + MAGIC


def read_footer(file: pa.NativeFile) -> Struct:
    """The footer of an open file.

    Raises:
        DamagedFooterError: It has a checksum, which is another one.
        ValueError: The file has no footer that can be read; also OSError and pyarrow's own.
    """
    end = file.size() - 8
    file.seek(end)
    size = int.from_bytes(file.read(4), "little")
    file.seek(end - size)
    data = file.read(size)
    footer, _ = read_struct(data)
    seal = footer.get(_EXTENSION)
    if seal and seal.type == BINARY and seal.value[:-4] == _MARK:
        checksum = zlib.crc32(data[:-_SIZE])
        if int.from_bytes(seal.value[-4:], "little") != checksum:
            raise DamagedFooterError("the checksum of the footer is another one: the file is damaged")
    return footer
