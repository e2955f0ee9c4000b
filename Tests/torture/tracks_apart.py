"""Rewrites an MP4 so that its tracks lie one behind the other: `tracks_apart.py IN OUT`.

Most programs interleave tracks. Some phones and editors write all audio behind all video. A reader that takes the samples in the
order of their times then jumps through the file.
"""

import struct
import sys


def boxes(data, start, end):
    while start < end:
        size, kind = struct.unpack_from(">I4s", data, start)
        yield kind, start + 8, start + size
        start += size


def inside(data, start, end, *path):
    for kind, first, last in boxes(data, start, end):
        if kind == path[0]:
            if len(path) == 1:
                yield first, last
            else:
                yield from inside(data, first, last, *path[1:])


def numbers(data, start, count):
    return struct.unpack_from(f">{count}I", data, start)


def chunks(data, table):
    """The sample sizes of each chunk of a track, ISO/IEC 14496-12, 8.7."""
    (sizes, _), = inside(data, *table, b"stsz")
    fixed, count = numbers(data, sizes + 4, 2)
    sample_sizes = [fixed] * count if fixed else list(numbers(data, sizes + 12, count))
    (runs, _), = inside(data, *table, b"stsc")
    (entries,) = numbers(data, runs + 4, 1)
    runs = [numbers(data, runs + 8 + 12 * i, 3) for i in range(entries)]
    (offsets, _), = inside(data, *table, b"stco")
    (count,) = numbers(data, offsets + 4, 1)
    taken = 0
    for chunk in range(1, count + 1):
        samples = [run[1] for run in runs if run[0] <= chunk][-1]
        yield offsets + 8 + 4 * (chunk - 1), sum(sample_sizes[taken : taken + samples])
        taken += samples


source, target = sys.argv[1:]
data = bytearray(open(source, "rb").read())
tables = list(inside(data, 0, len(data), b"moov", b"trak", b"mdia", b"minf", b"stbl"))
for table in tables:
    parts = []
    size = 8
    for place, count in list(chunks(data, table)):
        (offset,) = numbers(data, place, 1)
        parts.append(bytes(data[offset : offset + count]))
        struct.pack_into(">I", data, place, len(data) + size)
        size += count
    data += struct.pack(">I4s", size, b"mdat") + b"".join(parts)
open(target, "wb").write(data)
