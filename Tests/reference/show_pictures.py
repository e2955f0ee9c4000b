#!/usr/bin/python3
"""What Pillow shows of image files: the judge of the pictures that we decode.

Usage: show_pictures.py OUTPUT < FILES (a path a line)

Of each file, a line of JSON on standard output: its number of columns and rows, and `NUMBER.rgb` in OUTPUT; or why Pillow
does not show it. Pictures are turned as their EXIF says; of an animation the first one counts; what is transparent is
shown over black; 16 bits are made 8; where a file has a colour profile, its colours are made sRGB.
"""
import io
import json
import sys
import warnings

from PIL import Image, ImageCms, ImageOps


def rgb(picture):
    if picture.mode.startswith("I"):
        # Greys of 16 bits, which Pillow cuts off at 255 instead of scaling. One of them may stand for "transparent".
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
