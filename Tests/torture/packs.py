"""Unpacks the packs of a copied store, so that the referee reads their segments as those of a directory."""
import glob
import json
import os
import shutil

# The items of a segment's entry before those of its pack; the start of the pack, fragment and manifest with their sizes, then others.
ENTRY, PLACE = 13, 5


def unpack(store, output):
    """Writes the segments of all sessions of a copied store into an output directory, beside those that are there."""
    for head in glob.glob(os.path.join(glob.escape(store), "index", "*", "head.json")):
        session = os.path.basename(os.path.dirname(head))
        index = json.load(open(head, encoding="utf-8"))
        if "entries" not in index:
            continue
        entries = list(index["entries"])
        for page in index.get("pages", ()):
            entries += json.load(open(os.path.join(os.path.dirname(head), page), encoding="utf-8"))
        source, target = os.path.join(store, "output", session), os.path.join(output, session)
        os.makedirs(target, exist_ok=True)
        for entry in entries:
            write(entry, source, target)
        join_views(index, source, target)


def write(entry, source, target):
    """Writes the two files of a segment."""
    start = f"segment-{entry[0]:013}"
    if len(entry) == ENTRY or len(entry) == ENTRY - 1:
        if source != target:
            for ending in (".mp4", ".json"):
                shutil.copy(os.path.join(source, start + ending), os.path.join(target, start + ending))
        return
    first, offset, size, manifest, length = entry[ENTRY:ENTRY + PLACE]
    revision = entry[ENTRY + PLACE] if len(entry) > ENTRY + PLACE + 1 else 0
    name = f"pack-{first:013}-{revision}.mp4" if revision else f"pack-{first:013}.mp4"
    with open(os.path.join(source, name), "rb") as file:
        data = file.read()
    with open(os.path.join(target, start + ".mp4"), "wb") as file:
        file.write(data[:data.index(b"moof") - 4] + at_zero(data[offset:offset + size]))
    with open(os.path.join(target, start + ".json"), "wb") as file:
        file.write(data[manifest:manifest + length])


def at_zero(fragment):
    """Returns a fragment whose tracks begin at 0, as those of a segment's own file."""
    data, place = bytearray(fragment), 0
    while (place := data.find(b"tfdt", place)) >= 0:
        size = 8 if data[place + 4] else 4
        data[place + 8:place + 8 + size] = bytes(size)
        place += 8 + size
    return bytes(data)


def join_views(index, source, target):
    """Brings `session.json` up to date: packed sessions that go on have none, and late segments may lie elsewhere."""
    path = os.path.join(target, "session.json")
    try:
        with open(os.path.join(source, "session.json"), encoding="utf-8") as file:
            view = json.load(file)
    except FileNotFoundError:
        view = {"gaps": [], "complete": "end" in index}
    names = sorted(name for name in os.listdir(target) if name.startswith("segment-") and name.endswith(".mp4"))
    view["segments"] = [{"file": name} for name in names]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(view, file)
