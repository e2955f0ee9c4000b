"""Mutates a batch's bytes, files and archive. All random choices come from the given random.Random."""

import gzip
import io
import tarfile
import zlib

from absurd_json import absurd_description

NAMES = ["größe.jpg", "☃.png", "a\u0301.jpg", "\u202egpj.jpg", "%00.jpg", "-rf.jpg", "1767859513840.jpg",
         "0000000000000.jpg", "99999999999999999999.jpg", "-1.jpg", "1e12.jpg", " .jpg", "...jpg", "batch.json",
         "Batch.JSON", "replay.current", ".ongoing_segment", "n" * 250, "CON", "1767859512340.jpg\n", "\u0001\x7f"]


def flip(rng, data):
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(rng, data):
    # Mostly in the headers.
    at = rng.randrange(min(len(data), rng.choice([16, 64, 512, len(data)])))
    new = rng.choice([b"\0", b"\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0" * 8, rng.randbytes(4)])
    data[at:at + len(new)] = new


def truncate(rng, data):
    del data[rng.randrange(len(data)):]


def duplicate(rng, data):
    start = rng.randrange(len(data))
    part = data[start:start + rng.choice([1, 16, 512, 4096])]
    data[start:start] = part * rng.choice([1, 2, 50])


def cut_out(rng, data):
    start = rng.randrange(len(data))
    del data[start:start + rng.choice([1, 2, 16, 512])]


def move(rng, data):
    source, target = rng.randrange(len(data)), rng.randrange(len(data))
    part = data[source:source + rng.choice([4, 64, 512])]
    data[target:target + len(part)] = part


def mutated(rng, data, others):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        if not data:
            break
        if others and rng.random() < 0.15:
            other = rng.choice(others)
            at, start = rng.randrange(len(data)), rng.randrange(len(other) or 1)
            data[at:at + rng.choice([0, 512])] = other[start:start + rng.choice([64, 512, 65536])]
        else:
            rng.choice([flip, overwrite, truncate, duplicate, cut_out, move])(rng, data)
    return bytes(data)


def packed(rng, files):
    """Returns a tar of the files; some entries state a wrong type."""
    stream = io.BytesIO()
    form = rng.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    with tarfile.open(fileobj=stream, mode="w", format=form, errors="surrogateescape") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(rng.choice(["./", "", "", "folder/"]) + name)
            entry.size = len(data)
            if rng.random() < 0.05:
                entry.type = rng.choice([tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"S", b"x", b"L"])
                entry.linkname = rng.choice(["/etc/passwd", "../../outside/victim", name])
            if rng.random() < 0.03:
                entry.name = rng.choice(["../../outside/victim", "/tmp/mutated", "../" * 40 + name, "a/" * 200 + "b"])
            try:
                archive.addfile(entry, io.BytesIO(data))
            except ValueError:  # too long for ustar
                continue
    return stream.getvalue()


def mutated_file(rng, data, others):
    """Mutates the content before compression, or the compressed file, in which checksums detect most changes."""
    if data[:2] == b"\x1f\x8b" and rng.random() < 0.7:
        inside = mutated(rng, zlib.decompress(data, 31), others)
        return rng.choice([inside, gzip.compress(inside, 1, mtime=0)])
    return mutated(rng, data, others)


def mutated_directory(rng, files, images, others):
    files = dict(files)
    for _ in range(rng.choice([1, 1, 2, 3])):
        if not files:
            break
        name = rng.choice(sorted(files))
        if "batch.json" in files and rng.random() < 0.4:
            name = "batch.json"
        choice = rng.random()
        if name.endswith("batch.json") and choice < 0.8:
            files[name] = absurd_description(rng, files[name])
        elif choice < 0.45:
            files[name] = mutated(rng, files[name], others)
        elif choice < 0.65 and images:
            image = rng.choice(images)
            files[name] = image if rng.random() < 0.5 else mutated(rng, image, images)
        elif choice < 0.75:
            files[rng.choice(NAMES)] = files.pop(name)
        elif choice < 0.85:
            files[rng.choice(["sub", "sub/deeper", "replay", "frames"]) + "/" + name] = files[name]
        elif choice < 0.9:
            files["batch.json"] = absurd_description(rng, rng.choice([b'{"version":1,"session":"x"}', b"[]", b"null"]))
        else:
            files[name] = rng.choice([b"", b"\0", rng.randbytes(1000), files[name] + rng.randbytes(10)])
    return files
