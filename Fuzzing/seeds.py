#!/usr/bin/python3
"""Makes the fuzzing seeds from the fixtures: seeds.py DIRECTORY (creates a directory for each target in it)

Images are cut to their first bytes where a reader only reads names. Small seeds are fast, and mutations then hit the
relevant bytes. The form is the one of FuzzedContents.swift.
"""

import gzip
import io
import json
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
FORMATS = FIXTURES / "formats"
OUT = Path(sys.argv[1])
IMAGE_BYTES = 16
# Fields that a reader parses.
TEXTS = (".json", ".current", ".last", ".trace", "")
PNGS = ["rgb24", "rgba", "gray", "ya8", "pal8", "monob", "gray16be", "rgb48be", "rgba64be"]
JPEGS = ["yuvj420p", "yuvj422p", "yuvj440p", "yuvj444p", "gray"]


def seed(target, name, data):
    path = OUT / target / name.replace("/", "_")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def cut(name, data):
    return data[:IMAGE_BYTES] if Path(name).suffix not in TEXTS else data


def container(name, files):
    return name.encode() + b"\n" + b"\x1e".join(path.encode() + b"\x1f" + data for path, data in files)


def directory(path, beside=()):
    files = [(str(file.relative_to(path)), file.read_bytes()) for file in sorted(path.rglob("*")) if file.is_file()]
    files += [("../" + file.name, file.read_bytes()) for file in beside]
    return container(path.name + "/", [(name, cut(name, data)) for name, data in files])


def unpacked(path):
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, check=True).stdout
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def stem(path):
    return path.name.split(".")[0]


def members(path):
    with tarfile.open(path) as archive:
        return [(entry.name, archive.extractfile(entry).read()) for entry in archive if entry.isfile()]


def stream(path, form):
    """Returns the same records, with less of each image."""
    data, result, offset = unpacked(path), b"", 0
    while offset + 12 <= len(data):
        instant, length = struct.unpack_from(form, data, offset)
        image = data[offset + 12:offset + 12 + length]
        # A truncated record stays truncated.
        result += struct.pack(form, instant, min(length, IMAGE_BYTES + (len(image) < length))) + image[:IMAGE_BYTES]
        offset += 12 + length
    return result + data[offset:]


def bare_pixels():
    """Returns frame descriptions that need no image format: raw pixels, masks, layers."""
    bgra = {"format": "BGRA", "width": 4, "height": 3}
    wide = {"format": "BGR10A8", "alpha": "straight", "width": 4, "height": 3}
    masks = [{"x": 0.5, "y": 1, "width": 2, "height": 1, "color": "#102030"}]
    layers = [
        {"file": "a.bgra", "pixels": bgra, "x": -1, "y": 0, "width": 3, "height": 2, "opacity": 0.5, "masks": masks},
        {"file": "b.wide", "pixels": wide, "z": -1, "x": 2, "y": 1}]
    text = json.dumps({"version": 1, "scale": 2, "maskColor": "#ffffff", "frames": [
        {"file": "a.bgra", "timeMs": 1767859512340, "pixels": bgra, "masks": masks},
        {"file": "b.wide", "timeMs": 1767859513340, "pixels": wide, "masks": "all"},
        {"timeMs": 1767859514340, "width": 5, "height": 4, "layers": layers}]})
    return container("bare/", [
        ("batch.json", text.encode()), ("a.bgra", bytes(range(128, 176))), ("b.wide", bytes(range(128, 188)))])


def pointers():
    """Returns a description with pointer events."""
    kinds = ("down", "move", "move", "up", "cancel")
    events = [{"timeMs": 1767859512340 + 300 * number, "type": kind, "x": 1.5 * number, "y": 2, "pointer": number % 2}
              for number, kind in enumerate(kinds)]
    masks = [{"x": 1, "y": 1, "width": 2, "height": 2}]
    text = json.dumps({"version": 1, "scale": 1.5, "events": events + [{"timeMs": 1, "type": "tap"}], "frames": [
        {"file": "a.jpg", "timeMs": 1767859512340}, {"file": "b.jpg", "timeMs": 1767859513340, "masks": masks}]})
    return container("pointers/", [("batch.json", text.encode()), ("a.jpg", b""), ("b.jpg", b"")])


LABELS = [
    {"timeMs": 1767859512340, "text": "Pay", "kind": "step", "endMs": 1767859513340, "level": "error", "data": {"a": [1]}},
    {"timeMs": 1767859512340, "text": "two\nlines \u202e"}]


def labels():
    """Makes labels in each form."""
    frames = [{"file": "a.jpg", "timeMs": 1767859512340}]
    text = json.dumps({"version": 1, "frames": frames, "labels": LABELS + [{"text": "no time"}]})
    seed("native", "labels", container("labels/", [("batch.json", text.encode()), ("a.jpg", b"")]))
    seed("labels", "manifest", json.dumps(LABELS).encode())
    seed("labels", "lines", "\n".join(map(json.dumps, LABELS)).encode())
    seed("labels", "cues.vtt", b"WEBVTT\n\n00:01.000 --> 01:00:02.500 line:0\n<v A>a &amp; b\nc\n\n00:03.000 --> 00:04.000\nd\n")
    seed("labels", "cues.srt", b"1\n00:00:01,5 --> 00:00:02,000\nHi\n")
    seed("labels", "table.csv", b'time,text\n1.5,"a ""b"", c"\n1767859512.84,d\n2026-01-08T08:05:12Z,e\n1:02:03.5;f\n')


def agents():
    """Makes trajectories of cua and OSWorld, and a history of browser-use."""
    def record(number, **rest):
        return json.dumps({"created_at": str(139871523123400000 + 10_000_000 * number), **rest}).encode()
    click = {"type": "computer_call", "action": {"type": "click", "x": 10, "y": 20}}
    call = {"name": "computer", "arguments": json.dumps({"action": "scroll", "coordinate": [3, 4]})}
    files = [
        ("metadata.json", record(0)), ("turn_000/0000_screenshot.png", b""),
        ("turn_000/0001_computer_call_result.json", record(1, item=click)), ("turn_000/0002_screenshot_action.png", b""),
        ("turn_001/0003_function_call_result.json", record(2, item=call)), ("turn_001/0004_screenshot.png", b"")]
    seed("cua", "archive", container("run", files))
    seed("cua", "directory", container("run/", [("a/" + name, data) for name, data in files]))
    actions = ["import pyautogui; pyautogui.click(1, y=2)", "pyautogui.write('a\\'b') # c", {"action_type": "CLICK", "x": 1}]
    lines = [json.dumps({"action": action, "action_timestamp": "20260108@080512"}) for action in actions]
    files = [("step_1_20260108@080512.png", b""), ("traj.jsonl", "\n".join(lines).encode())]
    seed("names", "osworld", container("run", files))
    step = {"model_output": {"action": [{"click": {"index": 3}}, {"navigate": {"url": "https://a/?b"}}]},
            "result": [{"error": "no\nmore"}], "metadata": {"step_start_time": 1767859512.34, "step_end_time": 1767859513}}
    for name, picture in (("path", {"screenshot_path": "/tmp/screenshots/step_1.png"}), ("inside", {"screenshot": 40 * "/9j/"})):
        history = json.dumps({"history": [{**step, "state": {"url": "https://a/", "title": "A", **picture}}]}).encode()
        seed("browser-use", name, container("run/", [("history.json", history), ("screenshots/step_1.png", b"")]))


def interactions():
    """Returns rrweb events of a touch and of a mouse."""
    def event(at, **data):
        return {"type": 3, "timestamp": 1767859512340 + at, "data": data}
    positions = [{"x": 11.25, "y": 21, "id": 0, "timeOffset": -40}, {"x": 12, "y": 22, "timeOffset": 0}]
    return [
        {"type": 4, "timestamp": 1767859512340, "data": {"href": "", "width": 390, "height": 844}},
        event(100, source=2, type=7, id=0, x=10, y=20, pointerType=2, pointerId=1),
        event(500, source=6, positions=positions, pointerId=1), event(600, source=2, type=9, x=12, y=22, pointerId=1),
        event(700, source=1, positions=positions), event(800, source=12, positions=positions),
        event(900, source=2, type=10, x=1, y=2)]


def formats():
    for path in FIXTURES.iterdir():
        if (path / "batch.json").exists():
            seed("native", path.name, directory(path))
            seed("json", path.name, (path / "batch.json").read_bytes())
        elif path.is_dir() and path != FORMATS:
            seed("plain", path.name, directory(path))
    seed("native", "format", directory(FORMATS / "native"))
    seed("native", "archive", container("batch", [
        ("folder/batch.json", (FIXTURES / "masks" / "batch.json").read_bytes()), ("folder/0000.jpg", b"")]))
    seed("native", "bare", bare_pixels())
    seed("native", "pointers", pointers())
    seed("plain", "format", directory(FORMATS / "plain@1"))
    for path in FORMATS.glob("*sentry-cocoa"):
        seed("sentry-cocoa", path.name, directory(path))
        for recording in filter(Path.is_dir, path.iterdir()):
            seed("sentry-cocoa", path.name + "-recording", directory(recording, path.glob("replay.*")))
        for file in path.glob("replay.*"):
            seed("json", file.name, file.read_bytes())
    for path in FORMATS.glob("sentry-android*/*"):
        seed("sentry-android", path.parent.name, directory(path))
    facts = "config.width=176\nreplay.recording={}" + json.dumps(interactions()) + "\nsegment.id=0"
    seed("sentry-android", "pointers", container("replay_" + 32 * "a" + "/", [
        ("1767859512340.jpg", b""), (".ongoing_segment", facts.encode())]))
    for path in FORMATS.glob("*-tar*/*"):
        files = [(name, cut(name, data)) for name, data in members(path)]
        seed("recorder-tar", path.parent.name, container(stem(path), files))
    for path in FORMATS.glob("rejourney-spill/*"):
        seed("rejourney-spill", path.parent.name, directory(path))
    for target, form, folders in (
            ("openreplay-frames", "<QI", ("openreplay-frames*", "openreplay-canvas")),
            ("rejourney-frames", ">QI", ("rejourney-frames*",))):
        for path in (path for folder in folders for path in FORMATS.glob(folder + "/*")):
            data = stream(path, form)
            seed(target, path.name, stem(path).encode() + b"\n" + data)
            seed("archive", path.name, data)
    for path in sorted(FORMATS.glob("named/*")) + sorted(FORMATS.glob("numbered")):
        pattern = "#1767859512340,1" if path.name == "numbered" else path.name
        files = [(str(file.relative_to(path)), file.read_bytes()[:IMAGE_BYTES]) for file in sorted(path.rglob("*.*"))]
        seed("names", path.name, container(pattern, files))
    for number, (pattern, names) in enumerate([
            ("%*-%Y%m%d%H%M%S-%q", ["01-20261025023000-00.jpg", "01-20261025023000-01.jpg"]),
            ("step_%q_%Y%m%d@%H%M%S%f", ["step_1_20261025@023000123456.png", "step_2_20260329@023000.png"]),
            ("preview_%g-%s", ["preview_a-b-1767859512.3404.webp"]), ("Shot %d.%m.%Y at %H.%M.%S.%L%z", [
                "Shot 08.01.2026 at 08.05.12.340+01:00.png"])]):
        seed("names", f"pattern-{number}", container(pattern, [(name, b"") for name in names]))
    for path in FORMATS.glob("playwright/*.zip"):
        with zipfile.ZipFile(path) as archive:
            files = [(name, cut(name, archive.read(name))) for name in archive.namelist()]
        seed("playwright", path.name, container(stem(path), files))
        seed("playwright", path.name + "-directory", container(stem(path) + "/", files))


class Pipe(io.BytesIO):
    """A pipe-like buffer: the writer does not know sizes when it writes headers."""

    def seekable(self):
        return False

    def tell(self):
        raise OSError


def zips():
    for name, method, make in (
            ("stored", zipfile.ZIP_STORED, io.BytesIO), ("deflated", zipfile.ZIP_DEFLATED, io.BytesIO),
            ("streamed", zipfile.ZIP_DEFLATED, Pipe)):
        buffer = make()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for file in ("1767859512340.jpg", "frames\\1767859513340.jpg", "ä.png", "folder/", "../x.jpg"):
                info = zipfile.ZipInfo(file, (2026, 1, 8, 0, 0, 0))
                info.compress_type = method
                with archive.open(info, "w", force_zip64=name == "stored") as entry:
                    entry.write(b"" if file.endswith("/") else bytes(IMAGE_BYTES))
        data = buffer.getvalue()
        seed("zip", name, data)
        body, end = data[:-22], data[-22:]
        count, size, start = struct.unpack_from("<HII", end, 10)
        wide = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, start)
        locator = b"PK\x06\x07" + struct.pack("<IQI", 0, len(body), 1)
        seed("zip", name + "-wide", body + wide + locator + end)


def recordings():
    """Returns JSON with less of each image, except where an image's header gives the size of a picture."""
    for target, folders in (
            ("rrweb", ("posthog-*", "mixpanel", "launchdarkly", "rrweb-*")), ("screencast", ("screencast",))):
        for path in (path for folder in folders for path in FORMATS.glob(folder + "/*.json*")):
            data = re.sub(rb"[A-Za-z0-9+/\\]{400,}", lambda text: text[0][:96], unpacked(path))
            seed(target, path.parent.name + "-" + path.name, stem(path).encode() + b"\n" + data)
    picture = {"type": 2, "timestamp": 1767859512340, "data": {"wireframes": [{
        "id": 1, "x": 0, "y": 0, "width": 390, "height": 844, "type": "screenshot", "base64": 96 * "A"}]}}
    seed("rrweb", "pointers", b"pointers\n" + json.dumps([picture] + interactions()).encode())


def tar(form):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name in ("1767859512340.jpg", "./frames/1767859513340.jpg", "long/" * 30 + "1767859514340.jpg", "ä.png"):
            entry = tarfile.TarInfo(name)
            entry.size = IMAGE_BYTES
            archive.addfile(entry, io.BytesIO(bytes(IMAGE_BYTES)))
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            entry = tarfile.TarInfo("other")
            entry.type, entry.linkname = kind, "1767859512340.jpg"
            archive.addfile(entry)
    # Keeps only as many zero bytes at the end as a reader needs.
    return buffer.getvalue().rstrip(b"\0") + bytes(1536)


def archives():
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        data = tar(form)
        seed("archive", f"{form}.tar", data[:len(data) // 512 * 512])
        seed("archive", f"{form}.tar.gz", gzip.compress(data, mtime=0))
        seed("archive", f"{form}.tar.zst", subprocess.run(
            ["zstd", "-qc"], input=data, stdout=subprocess.PIPE, check=True).stdout)


def picture(codec, form, *filters, options=()):
    scaled = ",".join(["scale=17:12", *filters, "format=" + form])
    return subprocess.run(
        ["ffmpeg", "-v", "error", "-i", FIXTURES / "exact-1fps" / "0000.jpg", "-vf", scaled, "-c:v", codec,
         *options, "-strict", "unofficial", "-f", "image2pipe", "-"], stdout=subprocess.PIPE, check=True).stdout


def animation(codec, form, container):
    """Returns three pictures, of which the later ones replace a part of the first."""
    with tempfile.NamedTemporaryFile(suffix="." + container) as file:
        subprocess.run(
            ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=s=24x18:r=5:n=1:d=0.6", "-vf", "format=" + form, "-c:v",
             codec, "-bitexact", "-f", container, file.name], check=True)
        return Path(file.name).read_bytes()


def tiff_directory(following, **tags):
    """Returns a directory of a little-endian TIFF whose tags t256, t257 … have one LONG each."""
    entries = b"".join(struct.pack("<HHII", int(tag[1:]), 4, 1, value) for tag, value in sorted(tags.items()))
    return struct.pack("<H", len(tags)) + entries + struct.pack("<I", following)


def several_pictures():
    for codec, form, container in (
            ("gif", "pal8", "gif"), ("apng", "rgba", "apng"), ("apng", "pal8", "apng"),
            ("libwebp_anim", "bgra", "webp"), ("libwebp_anim", "yuva420p", "webp")):
        seed("picture", f"several-{codec}-{form}", animation(codec, form, container))
    size = 2 + 12 * 9 + 4
    grey = dict(t256=16, t257=8, t258=8, t259=1, t262=1, t273=8 + 2 * size, t277=1, t278=8, t279=128)
    seed("picture", "pages.tiff", b"II*\0" + struct.pack("<I", 8) + tiff_directory(8 + size, **grey)
         + tiff_directory(0, **grey) + bytes(range(128)))
    preview = picture("mjpeg", "yuvj420p")
    raw = dict(grey, t330=8 + size + 12)
    raw.pop("t279")
    first = tiff_directory(0, **raw)
    place = 8 + len(first)
    sensor = tiff_directory(0, t256=24, t257=18, t262=32803, t513=place + 2 + 12 * 5 + 4, t514=len(preview))
    raw["t330"] = place
    seed("picture", "raw.nef", b"II*\0" + struct.pack("<I", 8) + tiff_directory(0, **raw) + sensor + preview)
    seed("picture", "bits.tiff", b"II*\0" + struct.pack("<I", 8) + tiff_directory(
        0, **dict(grey, t258=16, t273=8 + size + 12, t279=256, t281=4095)) + struct.pack("<128H", *range(128)))


def exif(tag):
    """Returns a TIFF whose only entry is the orientation."""
    return b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">HHHIHHI", 1, 0x0112, 3, 1, tag, 0, 0)


def pictures():
    for codec, forms in (("png", PNGS), ("mjpeg", JPEGS), ("libwebp", ["yuv420p", "yuva420p", "bgra"])):
        for form in forms:
            seed("picture", f"{codec}-{form}", picture(codec, form))
    for codec, forms in (("bmp", ["bgr24", "bgra", "rgb555le", "pal8", "gray"]), ("gif", ["pal8"]), (
            "tiff", ["rgb24", "rgba", "gray", "gray16le", "rgb48le", "pal8", "monob"])):
        for form in forms:
            seed("picture", f"{codec}-{form}", picture(codec, form))
    for compression in ("raw", "lzw", "deflate"):
        seed("picture", f"tiff-{compression}", picture("tiff", "rgb24", options=["-compression_algo", compression]))
    for path in (*FIXTURES.glob("modern/*.*"), *FIXTURES.glob("modern-damaged/*.*")):
        seed("picture", path.name, path.read_bytes())
    for path in (*FIXTURES.glob("wide-colour/*.png"), *FIXTURES.glob("colour-bars/*0.png")):
        seed("png", path.name, path.read_bytes())
    for form in ("rgb24", "rgba"):
        for filters in ("none", "sub", "up", "avg", "paeth", "mixed"):
            seed("png", f"{form}-{filters}", picture("png", form, options=["-pred", filters]))
    jpeg, png = picture("mjpeg", "yuvj422p"), picture("png", "rgba")
    for tag in range(2, 9):
        body = exif(tag)
        segment = struct.pack(">BBH", 0xFF, 0xE1, 2 + len(body)) + body
        seed("picture", f"turned-{tag}.jpg", jpeg[:2] + segment + jpeg[2:])
        # The fuzz target corrects the checksum before it decodes the file.
        chunk = struct.pack(">I", len(body)) + b"eXIf" + body + bytes(4)
        seed("picture", f"turned-{tag}.png", png[:33] + chunk + png[33:])
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + bytes(4)

    p3 = chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000))
    for name, form, chunks in (
        ("pq", "rgb48be", chunk(b"cICP", bytes([9, 16, 0, 1]))), ("hlg", "rgba64be", chunk(b"cICP", bytes([9, 18, 0, 1]))),
        ("p3-code", "rgba", chunk(b"cICP", bytes([12, 13, 0, 0]))),
        ("linear", "gray16be", chunk(b"gAMA", struct.pack(">I", 100000)) + p3),
        ("old-gamma", "pal8", chunk(b"gAMA", struct.pack(">I", 55556)) + p3),
    ):
        data = picture("png", form)
        seed("picture", f"colours-{name}.png", data[:33] + chunks + data[33:])
        seed("png", f"colours-{name}.png", data[:33] + chunks + data[33:])
    for pattern in ("colour-bars/*0.*", "corrupt-frames/*", "wide-colour/*.*g", "wide-colour/*.webp"):
        for path in FIXTURES.glob(pattern):
            seed("picture", path.name, path.read_bytes())


def wire():
    def numbers(*values):
        return struct.pack(f"<{len(values)}q", *values)

    # The picture's size, the written bytes and its planes; then a frame's composition: masks, and an image, raw pixels
    # or layers.
    seed("wire", "layout", numbers(176, 320, 84480, 0, 176, 56320, 88, 70400, 88))
    mask = numbers(1) + struct.pack("<4d", 1, 2, 3.5, 4) + numbers(0)
    seed("wire", "image", numbers(0) + mask + numbers(0, 0))
    seed("wire", "pixels", numbers(0, 0, 0, 1, 0, 0, 4, 4, 16, 4))
    seed("wire", "layers", numbers(0, 0, 1, 20, 30, 1, 0, 5, 6, 1, 7, 8) + struct.pack("<d", 0.5) + numbers(0) + mask)


def words():
    def row(level, page, *rest):
        return "\t".join(map(str, (level, page, *rest)))

    titles = "level page_num block_num par_num line_num word_num left top width height conf text".replace(" ", "\t")
    table = [titles, row(1, 1, 0, 0, 0, 0, 0, 0, 320, 200, -1, ""), row(5, 1, 1, 1, 1, 1, 10, 20, 30, 12, "96.5", "Total"),
             row(1, 2, 0, 0, 0, 0, 0, 0, 64, 48, -1, ""), row(5, 2, 1, 1, 1, 1, 4, 5, 20, 9, 71, "Größe")]
    seed("words", "table.tsv", "".join(line + "\n" for line in table).encode())
    word = {"text": "Total", "x": 10, "y": 20, "width": 30, "height": 12, "fromMs": 1_000, "untilMs": 3_000, "confidence": 96}
    seed("words", "segment.json", json.dumps({
        "format": "segment-text/1", "session": "s", "file": "segment-1000.mp4", "startMs": 1_000, "endMs": 6_000,
        "sha256": "0" * 64, "engine": "tesseract 5.3.0", "language": "eng", "pictures": 2, "unreadMs": [5_000], "leftOut": 0,
        "words": [word]}).encode())


def redis():
    """Makes replies of Redis, in pieces of one byte and in large ones."""
    def reply(value):
        if value is None:
            return b"$-1\r\n"
        if isinstance(value, int):
            return b":%d\r\n" % value
        if isinstance(value, list):
            return b"*%d\r\n" % len(value) + b"".join(map(reply, value))
        return b"$%d\r\n" % len(value) + value.encode() + b"\r\n"

    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    entry = ["1767859512340-0", "phone@1767859512340.tar", 1, 0, None, trace]
    info = "# Server\r\nredis_version:7.2.4\r\nuptime_in_seconds:100\r\naof_enabled:1\r\nmaxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\n"
    for name, value in {
        "next": entry, "nothing": None, "duplicates": 0, "taken-over": [entry, entry[:4]], "held": [3, 1], "lost": ["1-0", "2-0"],
        "digest": "0123456789abcdef0123456789abcdef01234567", "group": "1767859512.340 host~1~a1", "store": ["s3://other"],
        "info": info, "largest": ["1-0", "a", 2 ** 63 - 1, -(2 ** 63)],
    }.items():
        seed("redis", name, b"\xff" + reply(value))
        seed("redis", name + "-drips", b"\x00" + reply(value))
    seed("redis", "error", b"\xff-NOGROUP the group has been made anew\r\n")
    seed("redis", "status", b"\xff+PONG\r\n")
    seed("redis", "two", b"\x06+PONG\r\n:1\r\n")
    seed("redis", "huge-list", b"\xff*2147483647\r\n:1\r\n")
    seed("redis", "huge-text", b"\xff$2147483647\r\nx")


def packs():
    """Makes the file of a segment, a fragment of it, and a pack with its manifest."""
    def box(kind, body):
        return struct.pack(">I", 8 + len(body)) + kind + body

    def full(kind, flags, *numbers, version=0):
        return box(kind, struct.pack(f">{1 + len(numbers)}I", version << 24 | flags, *numbers))

    def table(data, kind, start, head):
        """Returns the numbers of the first table of a kind behind `start`."""
        place = data.index(kind, start) + 8
        count = struct.unpack_from(">I", data, place + head)[0]
        columns = 2 if kind == b"stts" else 1
        return struct.unpack_from(f">{columns * count}I", data, place + head + 4)

    manifest = FIXTURES / "published" / "full-range" / "segment-1767859512340.json"
    file = manifest.with_suffix(".mp4").read_bytes()
    entry = file.index(b"avc1", file.index(b"stsd")) - 4
    entry = file[entry:entry + struct.unpack_from(">I", file, entry)[0]]
    tracks = []
    for kind in (b"vide", b"sbtl"):
        start = file.index(kind)
        runs = table(file, b"stts", start, 0)
        durations = [duration for count, duration in zip(runs[::2], runs[1::2]) for _ in range(count)]
        tracks.append(list(zip(durations, table(file, b"stsz", start, 4))))
    video, texts = tracks
    media = file[file.index(b"mdat") + 4:]

    def fragment(added, ends=b""):
        def movie(offset):
            head = lambda track: full(b"tfhd", 0x20020, track, 0) + full(b"tfdt", 0, 0, 90, version=1)
            rows = lambda samples: [number for sample in samples for number in sample]
            runs = (full(b"trun", 0x305, len(video), offset + sum(size for _, size in texts), 0x0200_0000, *rows(video)),
                    full(b"trun", 0x301, len(texts), offset, *rows(texts)))
            own = box(b"uuid", b"segment-encoder1" + entry + full(b"adds", 0, len(added), *added) + ends)
            return box(b"moof", full(b"mfhd", 0, 1) + box(b"traf", head(1) + runs[0]) + box(b"traf", head(2) + runs[1]) + own)
        return movie(len(movie(0)) + 8) + box(b"mdat", media)

    seed("pack", "file", file)
    seed("pack", "fragment", fragment([]))
    seed("pack", "added", fragment([len(video) - 1]))
    # Its own file ends with another duration, and with a repeat of its last picture.
    seed("pack", "ends", fragment([], full(b"ends", 0, 3, 90_000, 30_000, 60_000)))
    seed("pack", "whole", fragment([]) + box(b"uuid", b"segment-encoder1" + manifest.read_bytes()))


formats()
labels()
agents()
recordings()
archives()
zips()
pictures()
several_pictures()
wire()
words()
redis()
packs()
