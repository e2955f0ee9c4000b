"""Measures tesseract over the changed regions of captured pictures: recall of words, and CPU for each picture. Prints a table.

    /usr/bin/python3 Benchmarks/text.py CORPUS [WORDS] [--threads] [--only REGEX]

WORDS is JSON, as words.json: a list of {"session", "file", "box": [x, y, width, height], "words"}. `words` are all words of
two or more letters or digits that a person reads whole in the box, and that touch a changed block. A region is the box around
adjoining changed blocks of 16×16 pixels, some blocks wider on each side. One process of tesseract reads all regions of a
picture. CPU is user and system time, the start included, with one thread; --threads lets tesseract choose. Needs tesseract
and Pillow.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict, namedtuple
from pathlib import Path

import numpy
from PIL import Image

BLOCK = 16
WHOLE = 1000
# A way to read: tesseract's segmentation mode, the scale, and the blocks that are added at the sides and above and below.
Way = namedtuple("Way", "name mode scale across down", defaults=(1, 1, 1))
WAYS = [
    Way("16 px, psm 11", 11), Way("16 px, psm 6", 6), Way("16 px, psm 11, 2×", 11, 2), Way("32 px, psm 11", 11, 1, 2, 2),
    Way("64 px, psm 11", 11, 1, 4, 4), Way("96 and 48 px, psm 11", 11, 1, 6, 3), Way("rows, psm 11", 11, 1, WHOLE),
    Way("rows, psm 11, 2×", 11, 2, WHOLE), Way("rows, psm 6", 6, 1, WHOLE), Way("whole picture, psm 11", 11, 1, WHOLE, WHOLE),
]


def changed_blocks(before, picture):
    """Returns which blocks differ in at least one sample; all of them in another size."""
    height, width = picture.shape[:2]
    rows, columns = -(-height // BLOCK), -(-width // BLOCK)
    differs = numpy.ones((rows * BLOCK, columns * BLOCK), bool)
    if before is not None and before.shape == picture.shape:
        differs[:] = False
        differs[:height, :width] = (before != picture).any(2)
    return differs.reshape(rows, BLOCK, columns, BLOCK).any((1, 3))


def touch(box, other):
    return all(box[side] < other[side + 2] and other[side] < box[side + 2] for side in (0, 1))


def regions(blocks, way):
    """Returns boxes (left, top, right, bottom, in blocks) around changed blocks, padded."""
    rows, columns = blocks.shape
    boxes = [(max(0, column - way.across), max(0, row - way.down), column + way.across + 1, row + way.down + 1)
             for row, column in zip(*numpy.nonzero(blocks))]
    merged = []
    for box in boxes:
        while touching := [other for other in merged if touch(box, other)]:
            merged = [other for other in merged if other not in touching]
            sides = list(zip(box, *touching))
            box = (*map(min, sides[:2]), *map(max, sides[2:]))
        merged.append(box)
    return [(max(0, left), max(0, top), min(columns, right), min(rows, bottom)) for left, top, right, bottom in merged]


def read(picture, boxes, way, environment):
    """Returns tesseract's words with their centres in the picture, and CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for box in boxes:
            ends = [min(side * BLOCK, most) for side, most in zip(box[2:], picture.size)]
            part = picture.crop([side * BLOCK for side in box[:2]] + ends)
            names.append(Path(folder) / f"{len(names)}.ppm")
            part.resize([side * way.scale for side in part.size], Image.BICUBIC).save(names[-1])
        script = Path(folder) / "list"
        script.write_text("".join(f"{name}\n" for name in names))
        command = ["tesseract", script, Path(folder) / "words", "--psm", str(way.mode), "tsv"]
        child = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, command
        words = []
        for line in (Path(folder) / "words.tsv").read_text().splitlines()[1:]:
            cells = line.split("\t")
            if cells[0] == "5" and plain(cells[11]):
                left, top, width, height = (int(cell) / way.scale for cell in cells[6:10])
                box = boxes[int(cells[1]) - 1]
                words.append((plain(cells[11]), box[0] * BLOCK + left + width / 2, box[1] * BLOCK + top + height / 2))
    return words, used.ru_utime + used.ru_stime


def plain(word):
    """Returns a word without the punctuation around it."""
    return re.sub(r"^[\W_]+|[\W_]+$", "", word.replace("’", "'"))


def changed_pictures(folder):
    """Yields each file that differs from the one before, its picture, and its changed blocks."""
    before = data = None
    for file in sorted(folder.glob("*.jpg")):
        if data == (data := file.read_bytes()):
            continue
        picture = Image.open(file).convert("RGB")
        samples = numpy.asarray(picture)
        blocks = changed_blocks(before, samples)
        if blocks.any():
            yield file.name, picture, blocks
        before = samples


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("words", type=Path, nargs="?", default=Path(__file__).with_name("words.json"))
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    wanted = defaultdict(list)
    for part in json.loads(given.words.read_text()):
        wanted[part["session"], part["file"]].append(part)
    environment = {**os.environ, **({} if given.threads else {"OMP_THREAD_LIMIT": "1"})}
    sessions = sorted({session for session, _ in wanted})
    pictures = [(session, *changed) for session in sessions for changed in changed_pictures(given.corpus / session / "jpg")
                if (session, changed[0]) in wanted]
    for way in WAYS:
        if not re.search(given.only, way.name):
            continue
        found, total, seconds, missed = Counter(), Counter(), defaultdict(list), []
        for session, name, picture, blocks in pictures:
            words, cpu = read(picture, regions(blocks, way), way, environment)
            seconds[session].append(cpu)
            for part in wanted[session, name]:
                x, y, width, height = part["box"]
                inside = [word for word, across, down in words if x <= across <= x + width and y <= down <= y + height]
                for sense, change in [("exact", str), ("any case", str.lower)]:
                    have = Counter(map(change, inside))
                    for word in part["words"]:
                        word = change(plain(word))
                        found[session, sense] += have[word] > 0
                        missed += [f"{session} {word}"] * (sense == "exact" and have[word] <= 0)
                        have[word] -= 1
                total[session] += len(part["words"])
        every = [cpu for session in sessions for cpu in seconds[session]]
        recall = [f"{sum(found[session, sense] for session in sessions) / sum(total.values()):.3f}"
                  for sense in ("exact", "any case")]
        cells = [way.name, *recall, *(f"{found[session, 'exact'] / total[session]:.2f}" for session in sessions),
                 f"{statistics.mean(every):.2f}, {statistics.median(every):.2f}, {max(every):.2f}",
                 *(f"{statistics.mean(seconds[session]):.2f}" for session in sessions)]
        print("| " + " | ".join(cells) + " |", flush=True)
        print(f"{way.name}: missed {', '.join(missed)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
