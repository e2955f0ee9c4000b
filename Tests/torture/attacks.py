#!/usr/bin/python3
"""Makes one hostile batch: attacks.py KIND PATH VICTIM

PATH becomes a directory or a file. VICTIM is a file outside of PATH, which no reader may read or write. Large batches
repeat a few compressed megabytes, so that they are fast to make.
"""

import gzip
import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

FRAME = (Path(__file__).resolve().parents[2] / "fixtures/single-frame/1767859512340.jpg").read_bytes()
START = 1767859512340
MIB = 1 << 20


def tar_of_everything(path, victim):
    """Writes a tar with one frame and every kind of entry that is no regular file."""
    with tarfile.open(path, "w") as archive:
        def add(name, kind=tarfile.REGTYPE, link="", data=b""):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, link, len(data)
            entry.devmajor = entry.devminor = 1
            archive.addfile(entry, io.BytesIO(data))

        add(f"{START}.jpg", data=FRAME)
        add("../" * 9 + victim.lstrip("/"), data=b"overwritten")
        add("a/../../../" + Path(victim).name, data=b"overwritten")
        add(victim, data=b"overwritten")
        add(f"{START + 1000}.jpg", tarfile.SYMTYPE, victim)
        add(f"{START + 2000}.jpg", tarfile.LNKTYPE, victim)
        add(f"{START + 3000}.jpg", tarfile.CHRTYPE)
        add(f"{START + 4000}.jpg", tarfile.BLKTYPE)
        add(f"{START + 5000}.jpg", tarfile.FIFOTYPE)
        # An unpacker that writes files would write through the link.
        add("door", tarfile.SYMTYPE, os.path.dirname(victim))
        add("door/" + Path(victim).name, data=b"overwritten")


def directory_of_everything(path, victim):
    os.mkdir(path)
    Path(path, f"{START}.jpg").write_bytes(FRAME)
    os.symlink("/etc/passwd", f"{path}/{START + 1000}.jpg")
    os.symlink(victim, f"{path}/{START + 2000}.jpg")
    os.symlink(os.path.dirname(victim), f"{path}/door")
    os.mkfifo(f"{path}/{START + 3000}.jpg")
    os.chdir(path)
    socket.socket(socket.AF_UNIX).bind(f"{START + 4000}.jpg")


def gzipped(data):
    return gzip.compress(data, 1, mtime=0)


def zstandard(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def written(path, parts, *packers):
    """Compresses each part once and writes it repeatedly: readers treat gzip members and zstd frames as one stream."""
    with open(path, "wb") as file:
        for data, times in parts:
            for pack in packers[:-1]:
                data, times = pack(data) * times, 1
            file.write(packers[-1](data) * times)


def stream(data, *packers):
    """Compresses a gibibyte of repeated data."""
    return lambda path, _: written(path, [(data * (16 * MIB // len(data)), 64)], *packers)


def tar_of_zeros(count, pack, name=f"./{START}%d.jpg", mib=100):
    """Writes a tar of zero-filled files, each below the size limit of a file."""
    def make(path, _):
        parts = []
        for number in range(count):
            entry = tarfile.TarInfo(name % number if "%" in name else name)
            entry.size = mib * MIB
            parts += [(entry.tobuf(), 1), (bytes(4 * MIB), mib // 4)]
        written(path, [*parts, (bytes(1024), 1)], pack)
    return make


def sparse_tar(path, _):
    """Writes a tar of five sparse files of 100 MiB: each is a hole except for its last byte."""
    folder = path + ".files"
    os.mkdir(folder)
    for number in range(5):
        with open(f"{folder}/{START}{number}.jpg", "wb") as file:
            file.seek(100 * MIB - 1)
            file.write(b"\1")
    subprocess.run(["tar", "-S", "-cf", path, "-C", folder, "."], check=True)
    shutil.rmtree(folder)


def million_entries(path, _):
    def header(number):
        block = bytearray(512)
        block[:12] = b"%08d.jpg" % number
        block[100:108] = b"0000644\0"
        block[124:136] = b"00000000000\0"
        block[148:156] = b" " * 8
        block[156:157] = b"0"
        block[257:265] = b"ustar\x0000"
        block[148:156] = b"%06o\0 " % sum(block)
        return block

    # Repeats more data than any limit permits.
    part = gzip.compress(b"".join(map(header, range(25_000))), 1)
    Path(path).write_bytes(part * 40 + gzip.compress(bytes(1024)))


def zip_of_everything(path, victim):
    """Writes a zip with one frame and every kind of entry that is no regular file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        def add(name, mode=0o100644, data=b"overwritten"):
            entry = zipfile.ZipInfo(name)
            # ZipInfo normalizes names, so this sets the raw name.
            entry.filename, entry.external_attr, entry.create_system = name, mode << 16, 3
            archive.writestr(entry, data)

        add(f"{START}.jpg", data=FRAME)
        add("../" * 9 + victim.lstrip("/"))
        add("a\\..\\..\\" + Path(victim).name)
        add(victim)
        add(f"{START + 1000}.jpg", 0o120777, victim.encode())
        add(f"{START + 3000}.jpg", 0o020666)
        # An unpacker that writes files would write through the link.
        add("door", 0o120777, os.path.dirname(victim).encode())
        add("door/" + Path(victim).name)


def zip_of_zeros(path, _):
    """Writes a zip of four files of 100 MiB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(4):
            with archive.open(f"{START + number}.jpg", "w") as entry:
                for _ in range(25):
                    entry.write(bytes(4 * MIB))


def zip_of_one_place(path, _):
    """Writes a zip of a thousand entries that share the bytes of one."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{START}.jpg", bytes(MIB))
        only = archive.infolist()[0]
        for number in range(1, 1000):
            entry = zipfile.ZipInfo(f"{START + number}.jpg")
            for field in ("compress_type", "compress_size", "file_size", "CRC", "header_offset"):
                setattr(entry, field, getattr(only, field))
            archive.filelist.append(entry)


def zip_of_65536(path, _):
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(65_536):
            archive.writestr(zipfile.ZipInfo(f"{START + number}.jpg"), b"")


def huge_png(path, _):
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    size = (60_000).to_bytes(4, "big")
    os.mkdir(path)
    Path(path, f"{START}.jpg").write_bytes(FRAME)
    # One bit a pixel: 60 000 rows of 7 501 bytes. A full flush makes a block that can stand anywhere in the stream.
    pack = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = pack.compress(bytes(7_501 * 1_000)) + pack.flush(zlib.Z_FULL_FLUSH)
    # The Adler-32 checksum of n zeros (RFC 1950): the low half stays 1, the high half is n modulo 65 521.
    checksum = (7_501 * 60_000 % 65_521 << 16 | 1).to_bytes(4, "big")
    rows = b"\x78\xda" + block * 60 + pack.flush() + checksum
    Path(path, f"{START + 1000}.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size + size + b"\1\0\0\0\0") + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def huge_json(path, _):
    os.mkdir(path)
    Path(path, f"{START}.jpg").write_bytes(FRAME)
    with open(path + "/batch.json", "wb") as file:
        file.truncate(1024 * MIB)


ATTACKS = {
    "tar-of-everything": tar_of_everything,
    "directory-of-everything": directory_of_everything,
    # Readers recognize this as a tar without entries.
    "zeros": stream(b"\0", gzipped),
    "stream-gzip": stream(b"y\n", gzipped),
    "stream-zstd": stream(b"y\n", zstandard),
    "stream-twice": stream(b"y\n", zstandard, gzipped),
    "tar-zeros-gzip": tar_of_zeros(10, gzipped),
    "tar-zeros-zstd": tar_of_zeros(10, zstandard),
    "tar-skipped-zeros": tar_of_zeros(4, zstandard, name="./._%d"),
    "tar-sparse": sparse_tar,
    "million-entries": million_entries,
    "zip-of-everything": zip_of_everything,
    "zip-zeros": zip_of_zeros,
    "zip-one-place": zip_of_one_place,
    "zip-65536": zip_of_65536,
    "huge-png": huge_png,
    "json-directory": huge_json,
    "json-tar-gzip": tar_of_zeros(1, gzipped, name="./batch.json", mib=1024),
    "json-tar-zstd": tar_of_zeros(1, zstandard, name="./batch.json"),
}

if __name__ == "__main__":
    ATTACKS[sys.argv[1]](*sys.argv[2:4])
