"""Rewrites an MP4 so that its tracks are not interleaved: `tracks_apart.py IN OUT`.

Most programs interleave tracks. Some phones and editors write all audio behind all video. A reader that takes the samples in the
order of their times then jumps through the file.
"""

import struct
import sys

from forgeries import boxes, lists, packed, put


def numbers(body, start, count):
    return struct.unpack_from(f">{count}I", body, start)


def chunk_sizes(table):
    """Returns the bytes of each chunk of a track (ISO/IEC 14496-12, 8.7)."""
    fixed, samples = numbers(table[b"stsz"], 4, 2)
    sizes = [fixed] * samples if fixed else numbers(table[b"stsz"], 12, samples)
    runs = [numbers(table[b"stsc"], 8 + 12 * run, 3) for run in range(*numbers(table[b"stsc"], 4, 1))]
    taken = 0
    for chunk in range(1, 1 + numbers(table[b"stco"], 4, 1)[0]):
        count = [run[1] for run in runs if run[0] <= chunk][-1]
        yield sum(sizes[taken : taken + count])
        taken += count


source, target = sys.argv[1:]
data = open(source, "rb").read()
tree = boxes(data)
media = b""
for table in [dict(body) for row in lists(tree) for kind, body in row if kind == b"stbl"]:
    parts = b""
    for chunk, size in enumerate(chunk_sizes(table)):
        (offset,) = numbers(table[b"stco"], 8 + 4 * chunk, 1)
        put(table[b"stco"], 8 + 4 * chunk, len(data) + len(media) + 8 + len(parts))
        parts += data[offset : offset + size]
    media += struct.pack(">I4s", len(parts) + 8, b"mdat") + parts
open(target, "wb").write(packed(tree) + media)
