#!/usr/bin/python3
"""Reads a thumbnail track with webvtt-py and Pillow. Prints a JSON array of [start, end, width, height, number, file].

Times are in milliseconds. The size is that of the part of the sprite. The number is that of the fixture's patches
there.
"""
import json
import os
import re
import sys

import webvtt
from PIL import Image

path = sys.argv[1]
images, cues = {}, []


def milliseconds(text):
    hours, minutes, seconds = re.fullmatch(r"(\d{2,}):([0-5]\d):([0-5]\d\.\d{3})", text).groups()
    return (int(hours) * 60 + int(minutes)) * 60_000 + int(seconds.replace(".", ""))


for caption in webvtt.read(path):
    file, x, y, width, height = re.fullmatch(r"([\w-]+\.jpg)#xywh=(\d+),(\d+),(\d+),(\d+)", caption.text).groups()
    x, y, width, height = int(x), int(y), int(width), int(height)
    if file not in images:
        images[file] = Image.open(os.path.join(os.path.dirname(path), file))
        images[file].load()
        assert images[file].format == "JPEG"
    image = images[file]
    assert x + width <= image.width and y + height <= image.height, (file, image.size)
    part = image.crop((x, y, x + width, y + height)).convert("RGB")
    patches = [part.getpixel((width * (2 * bit + 1) // 16, height * 3 // 8))[1] > 127 for bit in range(8)]
    number = sum(1 << bit for bit in range(8) if patches[bit])
    cues.append([milliseconds(caption.start), milliseconds(caption.end), width, height, number, file])
print(json.dumps(cues))
