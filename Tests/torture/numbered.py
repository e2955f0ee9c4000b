"""Pictures that carry a number, which survives a lossy film: 8 × 8 blocks, black or white, are the 64 bits of a number and its CRC."""
import os
import re
import struct
import subprocess
import zlib

# Pixels of a side of the picture, and of a block.
SIDE, BLOCK = 64, 8
BLOCKS = SIDE // BLOCK
MAGIC = b"\x89PNG\r\n\x1a\n"
# Seconds between the beginnings of films that are decoded together: more than any of them lasts.
SPACE_S = 10_000
# A line of showinfo about a picture.
SHOWN = re.compile(r"\bn: *\d+ pts: *(\d+)")


def bits(number):
    """Returns the blocks of a number, row by row."""
    code = number << 32 | zlib.crc32(number.to_bytes(4, "big"))
    return [code >> (63 - place) & 1 for place in range(BLOCKS * BLOCKS)]


def png(number):
    """Returns a grey PNG of a number below 2 ^ 32."""
    code = bits(number)
    rows = b""
    for row in range(BLOCKS):
        line = b"".join((b"\xff" if bit else b"\x00") * BLOCK for bit in code[row * BLOCKS:(row + 1) * BLOCKS])
        rows += (b"\x00" + line) * BLOCK
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    return MAGIC + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def is_png(path):
    """Whether a file begins like a PNG. One that has vanished does not."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except FileNotFoundError:
        return False


def number(grey):
    """Returns the number in the grey pixels of a picture; None if there is none."""
    code = 0
    for row in range(BLOCKS):
        for column in range(BLOCKS):
            # The middle of the block: its border may be blurred.
            middle = [grey[(row * BLOCK + y) * SIDE + column * BLOCK + x] for y in (3, 4) for x in (3, 4)]
            code = code << 1 | (sum(middle) > 4 * 127)
    found = code >> 32
    return found if zlib.crc32(found.to_bytes(4, "big")) == code & 0xffffffff else None


def films(paths):
    """Returns for each MP4 the numbers of its pictures, by their time in ticks of 1/90 000 s.

    One ffmpeg decodes all of them, as if each lasted for SPACE_S. Raises ValueError for files that it cannot decode."""
    script = "ffconcat version 1.0\n" + "".join(f"file 'file:{os.path.abspath(path)}'\nduration {SPACE_S}\n" for path in paths)
    result = subprocess.run(
        ["ffmpeg", "-hide_banner", "-nostats", "-threads", "1", "-f", "concat", "-safe", "0", "-protocol_whitelist",
         "file,pipe", "-i", "pipe:0", "-map", "0:v", "-vf", "showinfo", "-fps_mode", "passthrough", "-f", "rawvideo",
         "-pix_fmt", "gray", "-"], input=script.encode(), capture_output=True)
    said = result.stderr.decode(errors="replace")
    times = [int(found) for found in SHOWN.findall(said)]
    size = SIDE * SIDE
    if result.returncode or len(result.stdout) != size * len(times):
        raise ValueError(f"ffmpeg ended with {result.returncode}: {said[-300:]}")
    found = [{} for _ in paths]
    for place, time in enumerate(times):
        film, time = divmod(time, 90_000 * SPACE_S)
        found[film][time] = number(result.stdout[place * size:(place + 1) * size])
    return found
