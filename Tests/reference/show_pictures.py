#!/usr/bin/python3
"""Decodes image files with Pillow, the reference for the pictures that the encoder decodes.

Usage: show_pictures.py OUTPUT < FILES (a path a line)

Prints a line of JSON for each file: its number of columns and rows, or the reason why Pillow cannot decode it. Writes
the pixels to `NUMBER.rgb` in OUTPUT. Pictures are turned as their EXIF says. Of an animation, the first picture
counts. Transparent pixels are shown over black. 16 bits are reduced to 8. A colour profile is converted to sRGB, and so are the
colours of a PNG with gAMA and cHRM, which Pillow reads and does not apply.
"""
import io
import json
import sys
import warnings

from PIL import Image, ImageCms, ImageOps


def encoded(light):
    """The curve of sRGB."""
    light = min(max(light, 0.0), 1.0)
    return 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055


def matrix(points):
    """From linear RGB to XYZ, by the chromaticities of white, red, green and blue (SMPTE RP 177)."""
    (wx, wy), *primaries = [points[place:place + 2] for place in range(0, 8, 2)]
    columns = [(x / y, 1.0, (1 - x - y) / y) for x, y in primaries]
    white = (wx / wy, 1.0, (1 - wx - wy) / wy)
    scales = solved([list(row) for row in zip(*columns)], white)
    return [[column[row] * scale for column, scale in zip(columns, scales)] for row in range(3)]


def determinant(m):
    return (m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]))


def solved(m, vector):
    """Cramer's rule."""
    whole = determinant(m)
    return [determinant([[vector[row] if column == place else m[row][column] for column in range(3)] for row in range(3)]) / whole
            for place in range(3)]


SRGB = (0.3127, 0.3290, 0.64, 0.33, 0.30, 0.60, 0.15, 0.06)


def with_png_colours(picture, info):
    """Converts RGB or RGBA pixels of a PNG to sRGB by gAMA and cHRM (PNG, third edition, 4.3)."""
    gamma = info.get("gamma")
    if not gamma or "srgb" in info or "icc_profile" in info:
        return picture
    exponent = 1 / gamma
    # 1/2.2, and like values, stand for the curve of sRGB.
    is_srgb = 0.43 <= gamma <= 0.52
    points = info.get("chromaticity")
    same = points is None or all(abs(one - other) < 0.002 for one, other in zip(points, SRGB))
    if is_srgb and same:
        return picture
    light = [((value / 255 + 0.055) / 1.055) ** 2.4 if is_srgb and value > 10 else value / 255 / 12.92 if is_srgb
             else (value / 255) ** exponent for value in range(256)]
    bands = picture.split()
    if same:
        table = [round(255 * encoded(value)) for value in light]
        return Image.merge(picture.mode, [band.point(table) for band in bands[:3]] + list(bands[3:]))
    own, standard = matrix(points), matrix(SRGB)
    known = {}

    def converted(pixel):
        if pixel not in known:
            linear = [light[value] for value in pixel]
            xyz = [sum(factor * value for factor, value in zip(row, linear)) for row in own]
            known[pixel] = tuple(round(255 * encoded(value)) for value in solved(standard, xyz))
        return known[pixel]

    colours = Image.merge("RGB", bands[:3])
    colours.putdata([converted(pixel) for pixel in colours.getdata()])
    return Image.merge(picture.mode, list(colours.split()) + list(bands[3:]))


def rgb(picture, info):
    if picture.mode.startswith("I"):
        # Pillow cuts 16-bit greys off at 255 instead of scaling them. One of them may mean "transparent".
        clear = picture.info.get("transparency")
        values = [0 if value == clear else (min(max(value, 0), 65535) * 255 + 32767) // 65535
                  for value in picture.convert("I").getdata()]
        grey = Image.new("L", picture.size)
        grey.putdata(values)
        return with_png_colours(grey.convert("RGB"), info)
    if picture.mode in ("LA", "PA", "La", "RGBA", "RGBa") or "transparency" in picture.info:
        layered = with_png_colours(picture.convert("RGBA"), info)
        return Image.alpha_composite(Image.new("RGBA", layered.size, "black"), layered).convert("RGB")
    return with_png_colours(picture.convert("RGB"), info)


def in_srgb(picture, profile):
    try:
        return ImageCms.profileToProfile(picture, ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB"))
    except ImageCms.PyCMSError:
        return picture


def scale_transparency(picture, path):
    """Pillow scales greys of fewer than 8 bits to 255, but not the grey that means "transparent"."""
    clear = picture.info.get("transparency")
    if picture.format == "PNG" and picture.mode == "L" and isinstance(clear, int):
        with open(path, "rb") as file:
            depth = file.read(25)[24]
        if depth < 8:
            picture.info["transparency"] = clear * 255 // (2 ** depth - 1)


def show(path, number, output):
    try:
        with Image.open(path) as picture:
            picture.load()
            scale_transparency(picture, path)
            kind, profile = picture.format, picture.info.get("icc_profile")
            # Pillow turns a TIFF when it loads it, and may have closed it then.
            upright = picture if kind == "TIFF" else ImageOps.exif_transpose(picture)
            shown = rgb(upright, picture.info if kind == "PNG" else {})
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
