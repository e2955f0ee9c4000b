#!/usr/bin/env python3
"""Makes one hostile batch: attacks.py KIND PATH VICTIM

PATH becomes a directory or a file; VICTIM is a file that lies outside and must neither be read nor written. What is
large is written by programs that stream, so that making it takes little.
"""

import gzip
import io
import os
import socket
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

FRAME = (Path(__file__).resolve().parents[2] / "fixtures/single-frame/1767859512340.jpg").read_bytes()
START = 1767859512340
MIB = 1 << 20


def shell(command, *arguments):
    subprocess.run(["sh", "-c", command, "sh", *arguments], check=True)


def tar_of_everything(path, victim):
    """One frame, and every kind of entry that is none."""
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
        # What unpacks to files would write through the link.
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


def stream(source, packer):
    """A gibibyte of it."""
    return lambda path, _: shell(f'{source} | head -c 1073741824 | {packer} >"$1"', path)


def tar_of_zeros(count, packer, options="", name=f"{START}%d.jpg", size=100 * MIB):
    """Files of so many bytes, none of which is too large to be read."""
    def make(path, _):
        folder = path + ".files"
        os.mkdir(folder)
        for number in range(count):
            with open(f"{folder}/" + (name % number if "%" in name else name), "wb") as file:
                # The last byte is none: tar would leave a hole at the end out.
                file.seek(size - 1)
                file.write(b"\1")
        shell(f'tar {options} -cf - -C "$1" . | {packer} >"$2" && rm -r "$1"', folder, path)
    return make


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

    # More than any limit lets through, over and over.
    part = gzip.compress(b"".join(map(header, range(25_000))), 1)
    Path(path).write_bytes(part * 40 + gzip.compress(bytes(1024)))


def huge_png(path, _):
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    size = (60_000).to_bytes(4, "big")
    os.mkdir(path)
    Path(path, f"{START}.jpg").write_bytes(FRAME)
    # One bit a pixel: all of its rows, in half a megabyte.
    pack = zlib.compressobj(9)
    rows = b"".join(pack.compress(bytes(7_501 * 1_000)) for _ in range(60)) + pack.flush()
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
    # A tar without entries, as far as anybody can tell.
    "zeros": stream("cat /dev/zero", "gzip -1"),
    "stream-gzip": stream("yes", "gzip -1"),
    "stream-zstd": stream("yes", "zstd -q"),
    "stream-twice": stream("yes", "zstd -q | gzip"),
    "tar-zeros-gzip": tar_of_zeros(10, "gzip -1"),
    "tar-zeros-zstd": tar_of_zeros(10, "zstd -q"),
    "tar-skipped-zeros": tar_of_zeros(4, "zstd -q", name="._%d"),
    "tar-sparse": tar_of_zeros(5, "cat", "-S"),
    "million-entries": million_entries,
    "huge-png": huge_png,
    "json-directory": huge_json,
    "json-tar-gzip": tar_of_zeros(1, "gzip -1", name="batch.json", size=1024 * MIB),
    "json-tar-zstd": tar_of_zeros(1, "zstd -q", name="batch.json"),
}

if __name__ == "__main__":
    ATTACKS[sys.argv[1]](*sys.argv[2:4])
