"""Makes sessions of other formats and sizes from those of the corpus, for bench.py.

A corpus has DIR/<session>/jpg, and for some sessions the lossless originals in png/.
"""

import hashlib
import io
import json
import os
import shutil
import sys
from collections import namedtuple
from pathlib import Path

from measure import ROOT, run

# A session to measure: a name for tables, its kind, and the directory of its captured files.
Session = namedtuple("Session", "name kind folder")
LARGE = ((1179, 2556), (1440, 3120))
LARGE_FRAMES = 40
# The points of a phone's screen: recorders that capture at 1 × write this size.
POINTS = (393, 852)
# The quality of a recorder's JPEG or WebP, unless session.json says another one.
QUALITY = 80


def frames_of(folder):
    return sorted(file for file in folder.iterdir() if file.suffix in (".jpg", ".png", ".webp"))


def corpus(argument):
    if argument:
        return Path(argument)
    beside = ROOT.parent / "shared" / "corpus"
    return beside if beside.is_dir() else None


def sessions(folder, scratch):
    """Returns the directories of all sessions."""
    if folder:
        return sorted(path.parent for path in folder.glob("*/jpg"))
    # Without a corpus, use the plain fixtures, although they are small.
    for name in ("jittered", "irregular-3fps", "odd-size"):
        shutil.copytree(ROOT / "fixtures" / name, scratch / "corpus" / name / "jpg")
    return sorted((scratch / "corpus").iterdir())


def chosen(paths, *names):
    """Returns the sessions of these names, or the first ones of a corpus that has other names."""
    return [path for path in paths if path.name in names] or paths[:len(names)]


def quality(path):
    facts = path / "session.json"
    return json.loads(facts.read_text()).get("jpeg_quality", QUALITY) if facts.exists() else QUALITY


def lossless(path):
    """Returns the best files that there are of a session's frames."""
    return path / "png" if (path / "png").is_dir() else path / "jpg"


def made(source, target, options):
    """Converts the pictures of one directory into another, once, in another process: see `convert`."""
    if not target.is_dir():
        target.mkdir(parents=True)
        run([sys.executable, __file__, source, target, json.dumps(options)])
    return target


def beside(files, originals):
    """Puts lossless originals beside captured files, where `truth_of` looks for them. Returns the captured files."""
    link = files.parent / "png"
    if not link.exists():
        link.symlink_to(originals)
    return files


def convert(source, target, options):
    """Writes each picture in another form. Equal files stay equal."""
    from PIL import Image
    known = {}
    for file in frames_of(source)[:options.get("most")]:
        data = file.read_bytes()
        new = target / (file.stem + options["suffix"])
        digest = hashlib.sha256(data).digest()
        if digest in known:
            os.link(known[digest], new)
            continue
        picture = Image.open(io.BytesIO(data)).convert(options.get("mode", "RGB"))
        if "size" in options:
            size = sorted(options["size"], reverse=picture.width > picture.height)
            picture = picture.resize(size, Image.LANCZOS)
        picture.save(new, **options.get("save", {}))
        known[digest] = new


def png(paths, scratch):
    """Returns sessions of RGB PNG, and one of RGBA PNG."""
    two = chosen(paths, "s01", "s04")
    result = []
    for path in two:
        files = path / "png"
        if not files.is_dir():
            files = made(path / "jpg", scratch / path.name / "png", {"suffix": ".png"})
        result.append(Session(f"{path.name} RGB", "PNG", files))
    opaque = made(result[0].folder, scratch / "rgba" / "rgba", {"suffix": ".png", "mode": "RGBA"})
    return [result[0], Session(f"{two[0].name} RGBA", "PNG", beside(opaque, result[0].folder)), *result[1:]]


def webp(paths, scratch):
    """Returns a session of lossy WebP."""
    path, = chosen(paths, "s01")
    files = made(lossless(path), scratch / "webp" / "webp", {"suffix": ".webp", "save": {"quality": quality(path)}})
    if (path / "png").is_dir():
        beside(files, path / "png")
    return [Session(path.name, "WebP", files)]


def large(paths, scratch):
    """Returns sessions of large JPEG files, and lossless originals beside them."""
    result = []
    for size in LARGE:
        for path in chosen(paths, "s01", "s08"):
            folder = scratch / f"{path.name}-{size[0]}"
            scaled = {"suffix": ".png", "size": size, "most": LARGE_FRAMES, "save": {"compress_level": 1}}
            originals = made(lossless(path), folder / "png", scaled)
            files = made(originals, folder / "jpg",
                         {"suffix": ".jpg", "save": {"quality": quality(path), "subsampling": "4:2:0"}})
            result.append(Session(path.name, f"{size[0]}×{size[1]}", files))
    return result


def phone(paths, scratch):
    """Returns sessions of PNG of a phone's size in points, as Sentry's SDK for iOS writes them."""
    scaled = {"suffix": ".png", "size": POINTS}
    return [Session(f"{path.name} {POINTS[0]}×{POINTS[1]}", "PNG",
                    made(lossless(path), scratch / f"{path.name}-{POINTS[0]}" / "png", scaled))
            for path in chosen(paths, "s01", "s04")]


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
