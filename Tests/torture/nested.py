"""Makes NUMBER archives that are compressed repeatedly, in DIRECTORY; always the same ones.

Usage: nested.py NUMBER DIRECTORY"""
import gzip
import io
import os
import random
import struct
import sys
import tarfile
import zipfile
import zlib


def empty_gzip_members(count):
    return gzip.compress(b"", mtime=0) * count


def gzipped(data):
    return gzip.compress(data, 1, mtime=0)


def zstd_frame(data, window):
    """Returns a frame of raw blocks that needs a window of 2 to the power of `window` bytes (RFC 8878, 3.1.1)."""
    blocks = [data[start:start + (1 << 17)] for start in range(0, len(data), 1 << 17)] or [b""]
    frame = struct.pack("<IBB", 0xFD2FB528, 0, (window - 10) << 3)
    for number, block in enumerate(blocks):
        frame += struct.pack("<I", len(block) << 3 | (number == len(blocks) - 1))[:3] + block
    return frame


def skippable_frame(size):
    return struct.pack("<II", 0x184D2A50, size) + bytes(size)


def tar(name, data):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


def zipped(name, data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


def bomb(size):
    """Returns a gzip member of `size` zeros, made without holding them in memory."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([packer.compress(bytes(1 << 20)) for _ in range(size >> 20)] + [packer.flush()])


def archive(dice, picture):
    """Returns one archive and its file name extension."""
    inner = dice.choice([
        lambda: empty_gzip_members(dice.randint(1, 60_000)),
        lambda: b"".join(zstd_frame(b"", dice.randint(20, 27)) for _ in range(dice.randint(1, 40_000))),
        lambda: skippable_frame(dice.randint(0, 3 << 20)) * dice.randint(1, 4),
        lambda: tar("1767859512340.jpg", picture),
        lambda: zipped("batch.tar", tar("batch.zip", zipped("1767859512340.jpg", picture))),
        lambda: tar("batch.zip", zipped("batch.tar", tar("1767859512340.jpg", picture))),
        lambda: bomb(dice.randint(1, 600) << 20) if dice.random() < 0.3 else bomb(1 << 20),
        lambda: b"",
    ])()
    kinds = dice.choice([["gzip"], ["zstd"], ["gzip", "zstd"]])
    for _ in range(dice.randint(2, 25)):
        kind = dice.choice(kinds)
        inner = gzipped(inner) if kind == "gzip" else zstd_frame(inner, dice.randint(10, 27))
        if dice.random() < 0.1:
            inner += empty_gzip_members(10) if kind == "gzip" else zstd_frame(b"", 27)
    return inner, dice.choice([".tar.gz", ".tar.zst", ".tar", ".gz", ".frames.zst"])


def main():
    number, directory = int(sys.argv[1]), sys.argv[2]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "fixtures/exact-1fps/0000.jpg"), "rb") as file:
        picture = file.read()
    for index in range(number):
        data, suffix = archive(random.Random(index), picture)
        with open(os.path.join(directory, f"nested{index}{suffix}"), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
