#!/usr/bin/python3
"""Makes small pictures of every accepted kind, of odd sides, all with the same content. Usage: make_pictures.py
OUTPUT"""
import io
import struct
import sys

from PIL import Image, PngImagePlugin, TiffImagePlugin

WIDTH, HEIGHT = 75, 49
output = sys.argv[1]


def pixel(x, y):
    """Returns colour gradients, a black and a white bar. Chroma subsampling changes such content little."""
    if 20 <= x < 28:
        return (0, 0, 0)
    if y >= 41:
        return (255, 255, 255)
    return (255 * x // WIDTH, 255 * y // HEIGHT, 255 - 255 * (x + y) // (WIDTH + HEIGHT))


places = [(x, y) for y in range(HEIGHT) for x in range(WIDTH)]
rgb = Image.new("RGB", (WIDTH, HEIGHT))
rgb.putdata([pixel(x, y) for x, y in places])
grey = rgb.convert("L")
alpha = Image.new("L", (WIDTH, HEIGHT))
alpha.putdata([0 if x > 60 else 128 if x > 45 else 255 for x, y in places])
rgba = Image.merge("RGBA", (*rgb.split(), alpha))
deep = Image.new("I;16", (WIDTH, HEIGHT))
deep.putdata([65535 * x // WIDTH for x, y in places])
palette = rgb.quantize(16)

for name, picture in [
    ("rgb", rgb), ("rgba", rgba), ("grey", grey), ("grey-alpha", Image.merge("LA", (grey, alpha))), ("16-bit-grey", deep),
    ("1-bit", grey.convert("1")), ("4-bit-palette", palette), ("8-bit-palette", rgb.quantize(200)),
    ("2-bit-palette", rgb.quantize(4)),
]:
    picture.save(f"{output}/png-{name}.png", bits=int(name[0]) if name[1:] == "-bit-palette" else 8)
# One colour that means "transparent" (tRNS).
rgb.save(f"{output}/png-rgb-clear-white.png", transparency=(255, 255, 255))
grey.save(f"{output}/png-grey-clear-white.png", transparency=255)
palette.save(f"{output}/png-palette-clear.png", transparency=bytes(range(255, 15, -15)))
rgba.save(f"{output}/png-animated.png", save_all=True, append_images=[Image.new("RGBA", rgba.size, "red")], duration=100)

for name, sampling in [("444", 0), ("422", 1), ("420", 2)]:
    rgb.save(f"{output}/jpeg-{name}.jpg", quality=95, subsampling=sampling)
    rgb.save(f"{output}/jpeg-{name}-progressive.jpg", quality=95, subsampling=sampling, progressive=True)
rgb.save(f"{output}/jpeg-as-rgb.jpg", quality=95, subsampling=0)
grey.save(f"{output}/jpeg-grey.jpg", quality=95)
rgb.save(f"{output}/jpeg-restarts.jpg", quality=95, restart_marker_blocks=2)
# Frames of MJPEG leave the standard Huffman tables out (ITU-T T.81, K.3.3).
plain = io.BytesIO()
rgb.save(plain, "JPEG", quality=95)
plain = plain.getvalue()
bare, place = plain[:2], 2
while plain[place + 1] != 0xDA:
    end = place + 2 + int.from_bytes(plain[place + 2:place + 4], "big")
    bare += plain[place:end] if plain[place + 1] != 0xC4 else b""
    place = end
for name, data in [("no-tables", bare + plain[place:]), ("bytes-behind", plain + b"\0\0dhav" + plain[-700:])]:
    with open(f"{output}/jpeg-{name}.jpg", "wb") as file:
        file.write(data)
rgb.convert("CMYK").save(f"{output}/jpeg-cmyk.jpg", quality=95)
turned = Image.Exif()
turned[0x0112] = 6
rgb.save(f"{output}/jpeg-turned.jpg", quality=95, exif=turned)

rgb.save(f"{output}/webp-lossy.webp", quality=95)
rgb.save(f"{output}/webp-lossless.webp", lossless=True)
rgba.save(f"{output}/webp-lossy-alpha.webp", quality=95)
rgba.save(f"{output}/webp-lossless-alpha.webp", lossless=True, exact=True)
rgb.save(f"{output}/webp-animated.webp", save_all=True, append_images=[Image.new("RGB", rgb.size, "red")], lossless=True)
rgb.save(f"{output}/webp-animated-lossy.webp", save_all=True, append_images=[Image.new("RGB", rgb.size, "red")], quality=95)

for name, picture in [("24-bit", rgb), ("8-bit-palette", palette), ("1-bit", grey.convert("1")), ("grey", grey)]:
    picture.save(f"{output}/bmp-{name}.bmp")
# 32 bits, of which the last eight have no meaning; rows from the top down; masks with alpha in a header of 108 bytes.
rows = [[pixel(x, y) for x in range(WIDTH)] for y in range(HEIGHT)]
info = struct.pack("<iiHHIIIIII", WIDTH, -HEIGHT, 1, 32, 0, 0, 0, 0, 0, 0)
words = b"".join(bytes((b, g, r, (r + 7 * x) % 256)) for row in rows for x, (r, g, b) in enumerate(row))
head = struct.pack("<HIII", 0x4D42, 54 + len(words), 0, 54) + struct.pack("<I", 40)
with open(f"{output}/bmp-32-bit-top-down.bmp", "wb") as file:
    file.write(head + info + words)

palette.save(f"{output}/gif-palette.gif")
grey.save(f"{output}/gif-grey.gif", interlace=1)
palette.save(f"{output}/gif-clear.gif", transparency=palette.getpixel((0, 0)))
palette.save(f"{output}/gif-animated.gif", save_all=True, append_images=[Image.new("RGB", rgb.size, "red")], duration=100)

for compression in ("raw", "packbits", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate"):
    rgb.save(f"{output}/tiff-rgb-{compression}.tif", compression=compression)
rgb.save(f"{output}/tiff-predictor.tif", compression="tiff_lzw", tiffinfo={317: 2})
for name, picture in [
    ("rgba", rgba), ("grey", grey), ("16-bit-grey", deep), ("palette", palette), ("1-bit", grey.convert("1"))]:
    picture.save(f"{output}/tiff-{name}.tif", compression="tiff_lzw" if name != "16-bit-grey" else "raw")
# Pillow writes no TIFF whose colours are multiplied by alpha: the kind of the fourth sample is changed from 2 to 1.
multiplied = io.BytesIO()
Image.frombytes("RGBA", rgba.size, rgba.convert("RGBa").tobytes()).save(multiplied, "TIFF")
kinds = [struct.pack("=HHIHH", 338, 3, 1, kind, 0) for kind in (2, 1)]
assert multiplied.getvalue().count(kinds[0]) == 1
with open(f"{output}/tiff-premultiplied.tif", "wb") as file:
    file.write(multiplied.getvalue().replace(*kinds))
TiffImagePlugin.STRIP_SIZE = 1000
rgb.save(f"{output}/tiff-strips.tif", compression="tiff_lzw")
rgb.save(f"{output}/tiff-turned.tif", tiffinfo={0x0112: 8})
rgb.save(f"{output}/tiff-text.tif", description="text that no decoder needs", software="x")
rgb.save(f"{output}/tiff-pages.tif", save_all=True, append_images=[Image.new("RGB", (5, 5), "red")])
