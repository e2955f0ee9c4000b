"""Makes forged sessions and damaged videos. All random choices come from the given random.Random."""

import hashlib
import json
import os
import re
import shutil
import struct
from pathlib import Path

from absurd_json import absurd
from mutations import flip, mutated

START, LONGEST = 1767859512340, 23_860_929  # ms: the start of the fixtures, and the longest sample of a segment
SECRET = b"Nobody may read this through a link."
NAMES = ["", "..", "../../victim", "/etc/passwd", "a/b", "a\0b", "n" * 300, "n" * 1_000_000, "\u202eö", "\x1b]0;x\x07", 'a\n"b',
         "<script>", "segment-0000000000000.mp4", "segment-1767859517340.mp4", "%2e%2e%2f"]
ENTRIES = ["segment-0000000000000.json", "segment-9999999999999.json", "segment-1767859512341.json", "segment-9999999999999.mp4",
           "segment-1767859512340.sentry.json", ".lock", "n" * 255, os.fsdecode(b"\xff\xfe"), "a\nb", "hls/session.m3u8",
           "thumbnails"]
CONTAINERS = [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"dinf", b"udta", b"mvex", b"moof", b"traf"]
TABLES = [b"stts", b"ctts", b"stsz", b"stsc", b"stco", b"stss", b"elst", b"dref", b"stsd", b"trun"]
HEADERS = [b"mvhd", b"tkhd", b"mdhd", b"hdlr", b"vmhd", b"stsd", b"tfhd", b"tfdt", b"trex", b"ftyp"]
WORDS = [0, 1, 2, 7, 8, 9, 0xFFFF, 0x10000, 1_000_000, 0x10000000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFF8, 0xFFFFFFFF]


def raw(text):
    """Returns a string that stands for JSON text: `canonical` writes that text unchanged."""
    return f"\ue000{text}\ue001"


# Bounds of durations, sides, counts and times, of 32, 53 and 64 bits; then values of other types.
NUMBERS = [raw(text) for text in """0 1 2 -1 -0 15 8192 16384 16385 90000 1048576 23860928 23860929 23860930 1073741824 2147483647
    2147483648 4294967296 978307199999 1767859512340 4102444800001 4398046511103 4398046511104 4398046511105 9007199254740993
    9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551616 0.5 1000.0 1e3 1e18 1e400 NaN Infinity
    "1000" null true [] {}""".split()]
LONG = [*(raw("[" * deep + "]" * deep) for deep in (61, 62, 63, 64, 100_000)), raw('{"a":' * 61 + "1" + "}" * 61),
        "x" * 3_000_000, [{"source": "x" * 200, "reason": "y" * 200}] * 20_000, {str(number): number for number in range(100_000)}]


def canonical(value):
    """Returns the text over which a manifest's digest is computed: sorted keys, no spaces, numbers unchanged."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return re.sub('"\ue000(.*?)\ue001"', lambda one: json.loads(f'"{one[1]}"'), text, flags=re.S)


def put_nonsense(rng, path, victim):
    """Replaces a file by invalid content, or by a link, directory or special file."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    data = rng.choice([b"", b"[" * 3_000_000, rng.randbytes(5_000), b"#EXTM3U\n/dev/zero\n", b"ffconcat version 1.0\nfile /dev/zero\n"])
    size, target = rng.choice([60 << 20, 1 << 30, 1 << 42]), rng.choice([victim, victim, path.name, "/dev/zero"])
    rng.choice([
        lambda: None, path.mkdir, lambda: os.mkfifo(path), lambda: os.mknod(path, 0o140600), lambda: path.symlink_to(target),
        lambda: path.write_bytes(data), lambda: (path.touch(), os.truncate(path, size))])()


class Session:
    """A copy of a valid session under a unique name. `write` computes the digests of its manifests again."""

    def __init__(self, path, genuine, videos):
        self.path, self.videos, self.replaced = path, videos, []
        shutil.copytree(genuine, path)
        files = [path / "session.json", *sorted(path.glob("segment-*[0-9].json"))]
        self.view, *self.manifests = [json.loads(file.read_text(), parse_float=raw) | {"session": path.name} for file in files]
        self.places = [path / manifest["file"] for manifest in self.manifests]

    def pick(self, rng, frame=False):
        """Returns a manifest or one of its frames; `place` becomes the path of its video."""
        manifest, self.place = rng.choice(list(zip(self.manifests, self.places)))
        return rng.choice(manifest["frames"]) if frame and manifest["frames"] else manifest

    def replace_video(self, rng, edit):
        manifest = self.pick(rng)
        data = edit(self.place.read_bytes())
        self.place.write_bytes(data)
        manifest.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    def prolong(self, manifest, by):
        manifest["frames"][-1]["holdMs"] += by
        manifest.update(durationMs=manifest["durationMs"] + by, endMs=manifest["endMs"] + by)

    def copy(self, at, start):
        """Adds a copy of a segment that begins at another time."""
        old, place = self.manifests[at], self.path / f"segment-{start:013d}.mp4"
        frames = [frame | {"timeMs": frame["timeMs"] + start - old["startMs"]} for frame in old["frames"]]
        self.manifests.append(
            old | {"startMs": start, "endMs": start + old["durationMs"], "file": place.name, "frames": frames})
        self.places.append(Path(shutil.copy(self.places[at], place)))

    def move(self, at, start):
        place = self.places[at]
        self.copy(at, start)
        del self.manifests[self.places.index(place)]
        self.places.remove(place)
        place.unlink()
        place.with_suffix(".json").unlink()

    def write(self, victim):
        for manifest, place in zip(self.manifests, self.places):
            manifest.pop("manifestSha256", None)
            manifest["manifestSha256"] = hashlib.sha256(canonical(manifest).encode()).hexdigest()
            place.with_suffix(".json").write_text(canonical(manifest) + "\n")
        (self.path / "session.json").write_text(canonical(self.view) + "\n")
        for rng, name in self.replaced:
            put_nonsense(rng, self.path / name, victim)


def change(rng, inside, keys, values=None):
    inside[rng.choice(keys or sorted(inside))] = raw(absurd(rng)) if values is None else rng.choice(values)


def other_frames(rng, frames):
    more = rng.choice([frames[0], raw(absurd(rng))])
    rng.choice([frames.clear, frames.reverse, frames.pop, lambda: frames.append(more)])()


def no_video(rng, session):
    manifest = session.pick(rng)
    manifest.update(bytes=rng.choice([len(SECRET), 60 << 20, 1 << 30, 1 << 42]), sha256=hashlib.sha256(SECRET).hexdigest())
    session.replaced.append((rng, session.place.name))


def members(keys, values, in_frame=False):
    """Returns a kind for each of these members. The kind replaces the member's value."""
    return {key: lambda r, s, key=key: change(r, s.pick(r, in_frame), [key], values) for key in keys.split()}


# Each function takes a random.Random and a Session.
SESSION_KINDS = {
    "unchanged": lambda r, s: None,
    **members("startMs endMs durationMs samples part parts intervalMs gapAfterMs bytes", NUMBERS),
    **members("holdMs timeMs", NUMBERS, in_frame=True),
    **members("file batch session codec sha256", NAMES),
    **members("source status note", NAMES, in_frame=True),
    **members("metadata encoder refused reencodedFrom", LONG),
    "sizes": lambda r, s: [change(r, one, [key], NUMBERS) for one in s.manifests for key in ("width", "height")],
    "coded sizes": lambda r, s: [change(r, s.pick(r), [key], NUMBERS) for key in ("codedWidth", "codedHeight")],
    "missing member": lambda r, s: (inside := s.pick(r, r.random() < 0.5)).pop(r.choice(sorted(inside))),
    "strange member": lambda r, s: change(r, s.pick(r, r.random() < 0.5), None),
    "extra members": lambda r, s: s.pick(r).update(
        (f"{r.choice(NAMES[:7])}{number}", raw(absurd(r))) for number in range(r.choice([1, 500]))),
    "long hold": lambda r, s: s.prolong(s.pick(r), r.choice([1, LONGEST - 9_000, LONGEST - 3_000, LONGEST, 1 << 41])),
    "many frames": lambda r, s: (frames := s.pick(r)["frames"]).extend(
        [frames[-1] | {"holdMs": 0}] * r.choice([9, 3_600, 50_000])),
    "other frames": lambda r, s: other_frames(r, s.pick(r)["frames"]),
    "far later": lambda r, s: s.move(
        -1, START + r.choice([LONGEST, LONGEST + 9_000, 86_400_000, 1 << 40, (1 << 42) - START - 9_000])),
    "far earlier": lambda r, s: s.move(0, r.choice([0, 1, 978_307_200_000, START - LONGEST])),
    "overlap": lambda r, s: s.copy(0, START + r.choice([1, 90, 499, 999, 2_500])),
    "many segments": lambda r, s: [s.copy(-1, START + 5_000 * (number + 9)) for number in range(r.choice([20, 150]))],
    "sealed damage": lambda r, s: s.replace_video(r, lambda data: damaged(r, data)[1]),
    "sealed mutation": lambda r, s: s.replace_video(r, lambda data: mutated(r, data, [])),
    "foreign video": lambda r, s: s.replace_video(r, lambda _: r.choice(s.videos)),
    "no video": no_video,
    "no manifest": lambda r, s: (s.pick(r), s.replaced.append((r, s.place.stem + ".json"))),
    "strange view": lambda r, s: change(
        r, r.choice([s.view, r.choice(s.view["segments"])]), None, r.choice([None, NUMBERS, LONG])),
    "no view": lambda r, s: s.replaced.append((r, r.choice(["session.json", "session.ffconcat"]))),
    "strange entries": lambda r, s: s.replaced.extend((r, name) for name in r.sample(ENTRIES, 3)),
}


def boxes(data, depth=0):
    """Returns a video as [type, content] of each box; the content of a container is again such a list."""
    tree = []
    while len(data) >= 8:
        size, kind = struct.unpack_from(">I4s", data)
        size = size if 8 <= size <= len(data) else len(data)
        tree.append([kind, boxes(data[8:size], depth + 1) if kind in CONTAINERS and depth < 20 else bytearray(data[8:size])])
        data = data[size:]
    # Move moov behind the media: then its length can change, and all offsets stay valid.
    if [kind for kind, _ in tree] == [b"ftyp", b"moov", b"mdat"]:
        for body in of(tree, b"stco"):
            put(body, 8, *(offset - len(packed(tree[1:2])) for offset, in struct.iter_unpack(">I", body[8:])))
        tree.append(tree.pop(1))
    return tree


def packed(tree):
    contents = [(kind, packed(body) if isinstance(body, list) else bytes(body)) for kind, body in tree]
    return b"".join(struct.pack(">I4s", len(body) + 8, kind) + body for kind, body in contents)


def lists(tree):
    """Returns the tree, and the content of each container in it."""
    return [tree] + [inner for _, body in tree if isinstance(body, list) for inner in lists(body)]


def of(tree, *kinds):
    """Returns the contents of all boxes of these types; if there is none, bytes that belong to no file."""
    return [body for row in lists(tree) for kind, body in row if kind in kinds and len(body) > 7] or [bytearray(64)]


def put(body, at, *values):
    body[at:at + 4 * len(values)] = b"".join((value & 0xFFFFFFFF).to_bytes(4, "big") for value in values)


def put_words(rng, body, first):
    put(body, rng.randrange(first, max(first + 1, len(body)), 4), *rng.choices(WORDS, k=rng.choice([1, 1, 4])))


def behind(rng, data, *names):
    """Returns the offset behind a random occurrence of one of these box types."""
    return rng.choice([found.end() for found in re.finditer(b"|".join(names), data)] or [8])


def flip_behind(rng, data, name, length):
    at = behind(rng, data, name)
    part = data[at:at + length] or bytearray(1)
    flip(rng, part)
    data[at:at + len(part)] = part


def edit_list(rng, tree):
    number = rng.choice([1, 2, 9_000])
    rows = b"".join(struct.pack(">3I", *rng.choices(WORDS, k=3)) for _ in range(number))
    rng.choice(lists(tree)[1:] or [tree]).append([b"edts", [[b"elst", struct.pack(">II", 0, number) + rows]]])


def many_samples(rng, tree):
    """Writes tables that list many samples of one byte, and sometimes as many bytes."""
    number = rng.choice([9_999, 1_000_000, 3_900_000, 9_900_000, 0x7FFFFFFF])
    for kind, *words in ((b"stsz", 1, number), (b"stts", 1, number, 1), (b"stsc", 1, 1, number, 1)):
        for body in of(tree, kind):
            put(body, 0, 0, *words)
    # Readers refuse files whose two tracks together have more samples than bytes.
    tree.append([b"free", bytes(rng.choice([0, min(2 * number, 20_000_000)]))])


def fragment(rng, tree):
    run = struct.pack(">5I", 0x301, *rng.choices(WORDS, k=4)) + bytes(rng.choice([0, 8_000]))
    tree.append([b"moof", [[b"traf", [[b"tfhd", struct.pack(">II", 0, rng.choice([1, 2]))], [b"trun", run]]]]])


def deep_boxes(rng, tree):
    kind, depth = rng.choice(CONTAINERS), rng.choice([100, 10_000])
    rng.choice(lists(tree)).insert(0, [kind, b"".join(struct.pack(">I4s", 8 * level, kind) for level in range(depth, 0, -1))])


MEDIA = [b"hvc1", b"avc3", b"mp4v", b"jpeg", b"vp09", b"av01", b"png ", b"encv", b"rle "]
# Each function takes a random.Random and the boxes of a video.
TREE_KINDS = {
    "table entry": lambda r, t: put_words(r, r.choice(of(t, *TABLES)), 8),
    "table count": lambda r, t: put(r.choice(of(t, *TABLES)), r.choice([4, 4, 8]), r.choice(WORDS)),
    "times": lambda r, t: put_words(r, r.choice(of(t, b"stts", b"ctts")), 8),
    "timescale": lambda r, t: put(r.choice(of(t, b"mvhd", b"mdhd")), 12, r.choice([0, 1, 3, 0x7FFFFFFF, 0xFFFFFFFF])),
    "header": lambda r, t: put_words(r, r.choice(of(t, *HEADERS)), 0),
    "matrix": lambda r, t: put_words(r, r.choice(of(t, b"tkhd")), 40),
    "edit list": edit_list,
    "duplicated box": lambda r, t: (row := r.choice(lists(t))).extend([r.choice(row or [[b"free", b""]])] * r.choice([1, 2, 300])),
    "removed box": lambda r, t: (row := r.choice(lists(t))).remove(r.choice(row)) if t else None,
    "swapped boxes": lambda r, t: r.shuffle(r.choice(lists(t))),
    "many samples": many_samples,
    "media kind": lambda r, t: put(r.choice(of(t, b"stsd")), 12, int.from_bytes(r.choice(MEDIA), "big")),
    "reference": lambda r, t: r.choice(of(t, b"dref")).__setitem__(slice(8, None), b"\0\0\0\x18url \0\0\0\0/etc/passwd\0"),
    "fragment": fragment,
    "deep boxes": deep_boxes,
}
# Each function takes a random.Random and the bytes of a video.
BYTE_KINDS = {
    "bits": flip,
    "bits in moov": lambda r, d: flip_behind(r, d, b"moov", 4_000),
    "bits in mdat": lambda r, d: flip_behind(r, d, b"mdat", 1 << 20),
    "configuration": lambda r, d: flip_behind(r, d, b"avcC|hvcC", r.choice([12, 30, 200])),
    # The first chunk offset is 8 bytes behind the type. At that offset, the file has the length of a picture's first
    # unit.
    "unit length": lambda r, d: put(
        d, int.from_bytes(d[(at := behind(r, d, b"stco") + 8):at + 4], "big"), r.choice([*WORDS, len(d)])),
    "box size": lambda r, d: put(
        d, behind(r, d, *CONTAINERS, *TABLES, *HEADERS, b"mdat", b"avcC") - 8, r.choice([*WORDS, len(d) + 1])),
    "truncated": lambda r, d: d.__delitem__(slice(r.randrange(len(d)), None)),
    "appended": lambda r, d: d.extend(r.choice([
        r.randbytes(r.choice([1, 7, 5_000])), bytes(d), struct.pack(">I4s", 8, b"free") * 50_000,
        struct.pack(">I4sQ", 1, b"mdat", r.choice([0, 15, 1 << 62, (1 << 64) - 1]))])),
    "mutation": lambda r, d: d.__setitem__(slice(None), mutated(r, d, [])),
}


def damaged(rng, data):
    """-> the kind of damage, and the damaged video."""
    kind = rng.choice([*TREE_KINDS, *BYTE_KINDS])
    if kind in TREE_KINDS:
        tree = boxes(data)
        TREE_KINDS[kind](rng, tree)
        return kind, packed(tree)
    data = bytearray(data)
    BYTE_KINDS[kind](rng, data)
    return kind, bytes(data)
