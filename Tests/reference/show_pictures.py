#!/usr/bin/python3
"""Decodes image files with Pillow, the reference for the pictures that the encoder decodes.

Usage: show_pictures.py OUTPUT < FILES (a path a line)

Prints a line of JSON for each file: its number of columns and rows, or the reason why Pillow cannot decode it. Writes
the pixels to `NUMBER.rgb` in OUTPUT. Pictures are turned as their EXIF says. Of an animation, the first picture
counts. Transparent pixels are shown over black. 16 bits are reduced to 8. A colour profile is converted to sRGB.
"""
import io
import json
import sys
import warnings

from PIL import Image, ImageCms, ImageOps


def rgb(picture):
    if picture.mode.startswith("I"):
        # Pillow cuts 16-bit greys off at 255 instead of scaling them. One of them may mean "transparent".
        clear = picture.info.get("transparency")
        values = [0 if value == clear else (min(max(value, 0), 65535) * 255 + 32767) // 65535
                  for value in picture.convert("I").getdata()]
        grey = Image.new("L", picture.size)
        grey.putdata(values)
        return grey.convert("RGB")
    if picture.mode in ("LA", "PA", "La", "RGBA", "RGBa") or "transparency" in picture.info:
        layered = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layered.size, "black"), layered).convert("RGB")
    return picture.convert("RGB")


def in_srgb(picture, profile):
    try:
        return ImageCms.profileToProfile(picture, ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB"))
    except ImageCms.PyCMSError:
        return picture


def show(path, number, output):
    try:
        with Image.open(path) as picture:
            kind, profile = picture.format, picture.info.get("icc_profile")
            picture.load()
            shown = rgb(ImageOps.exif_transpose(picture))
            if profile:
                shown = in_srgb(shown, profile)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    with open(f"{output}/{number}.rgb", "wb") as file:
        file.write(shown.tobytes())
    return {"kind": kind, "width": shown.width, "height": shown.height}


warnings.simplefilter("ignore")
for number, line in enumerate(sys.stdin):
    print(json.dumps(show(line.rstrip("\n"), number, sys.argv[1])))
