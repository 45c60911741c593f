"""Frames of zstd without a checksum are found behind whatever stands before them."""

import importlib
import sys

import pytest
from tokenrecords.files.zstd_frames import lacks_checksum

zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
Parameter = zstd.CompressionParameter

TEXTS = {
    "empty": b"",
    "short": b"{}",
    "of one letter": b"a" * 300_000,  # blocks that repeat a byte
    "long": bytes(range(256)) * 2_000 + b"".join(str(number * 7919).encode() for number in range(60_000)),
}
SKIPPABLE = (0x184D2A5F).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"\x28\xb5\x2f"


def packed(text, *, checksum, **options):
    flags = {Parameter[name]: value for name, value in options.items()}
    return zstd.compress(text, options={Parameter.checksum_flag: checksum, **flags})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.zst"


@pytest.mark.parametrize(
    "options", [{}, {"content_size_flag": 0}, {"window_log": 10}, {"compression_level": -5}], ids=str
)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_frames(path, text, options):
    sound, without = (packed(text, checksum=flag, **options) for flag in (1, 0))
    path.write_bytes(sound)
    assert not lacks_checksum(path)
    path.write_bytes(without)
    assert lacks_checksum(path)
    path.write_bytes(sound + SKIPPABLE + sound)
    assert not lacks_checksum(path)
    path.write_bytes(sound + SKIPPABLE + sound + without)
    assert lacks_checksum(path)


def test_a_stream_of_many_blocks(path):
    compressor = zstd.ZstdCompressor(options={Parameter.checksum_flag: 1})
    parts = [compressor.compress(text, compressor.FLUSH_BLOCK) for text in TEXTS.values()]
    path.write_bytes(b"".join(parts) + compressor.flush() + packed(b"x", checksum=0))
    assert lacks_checksum(path)


def test_nothing_is_said_from_damage_on(path):
    sound, without = packed(TEXTS["long"], checksum=1), packed(b"x", checksum=0)
    for data in (b"", b"\x28", b"abcd" + without, sound[:-5], sound[:9], SKIPPABLE[:6], sound + b"\x1f\x8b\x08\x00"):
        path.write_bytes(data)
        assert not lacks_checksum(path)
