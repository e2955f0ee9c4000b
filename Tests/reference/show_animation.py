#!/usr/bin/python3
"""Decodes an animated picture with Pillow.

Usage: show_animation.py FILE OUTPUT

Prints a JSON object: `format`, `width`, `height`, `loop` (0 is for ever; absent without a loop), and `holdsMs`, the
duration of each picture in milliseconds. Writes the pixels on screen to `NUMBER.rgb` in OUTPUT.
"""
import json
import sys

from PIL import Image

path, output = sys.argv[1:]
image = Image.open(path)
holds = []
for number in range(image.n_frames):
    image.seek(number)
    # WebP tells the duration once the picture is decoded.
    image.load()
    holds.append(image.info["duration"])
    with open(f"{output}/{number}.rgb", "wb") as file:
        file.write(image.convert("RGB").tobytes())
print(json.dumps({"format": image.format, "width": image.width, "height": image.height,
                  "loop": image.info.get("loop"), "holdsMs": holds}))
