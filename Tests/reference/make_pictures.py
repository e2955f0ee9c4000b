#!/usr/bin/python3
"""Makes small pictures of every accepted kind, of odd sides, all with the same content. Usage: make_pictures.py
OUTPUT"""
import io
import sys

from PIL import Image, PngImagePlugin

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
