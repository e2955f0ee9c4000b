"""Compares the GIFs of `stitch` with those of ffmpeg's recipe, and prints a table.

    /usr/bin/python3 Benchmarks/animations.py PROGRAM BATCH...    each batch is a session, such as a folder of captures

The recipe is `split[a][b];[a]palettegen[p];[b][p]paletteuse`. It gets the pictures of the film in the size of our GIF. PSNR
compares each picture on screen with that of the film. *Blurred* is the mean difference in 255ths after a blur of five pixels:
a viewer sees dithered pixels from afar. Needs ffmpeg and Pillow.
"""
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops, ImageFilter, ImageStat

RECIPE = "split[a][b];[a]palettegen[p];[b][p]paletteuse"
# At most as many pictures are compared.
MOST = 40


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, **options).stdout


def shown(path):
    """Returns when each picture of an animated picture comes on screen in ms, and the picture."""
    image, now, pictures = Image.open(path), 0, []
    for number in range(image.n_frames):
        image.seek(number)
        image.load()
        pictures.append((now, image.convert("RGB")))
        now += image.info["duration"]
    return pictures


def likeness(pictures, instants, film):
    """Returns the PSNR, and the mean difference after a blur. `instants` are those of the film's pictures in `pictures`."""
    squares = differences = count = 0
    blur = ImageFilter.BoxBlur(2)
    for number in range(0, len(film), max(1, len(film) // MOST)):
        picture = [picture for ms, picture in pictures if ms <= instants[number]][-1]
        other = film[number]
        squares += sum(ImageStat.Stat(ImageChops.difference(picture, other)).sum2)
        blurred = ImageChops.difference(picture.filter(blur), other.filter(blur))
        differences += sum(ImageStat.Stat(blurred).sum)
        count += 3 * picture.width * picture.height
    return 10 * math.log10(255 ** 2 * count / max(1, squares)), differences / count


def compare(program, batch, scratch):
    output = scratch / "output"
    # A batch may name its session itself.
    receipt = json.loads(run(program, "encode", batch, "--output", output, "--session", "session", "--json"))
    session = output / receipt["session"]
    files = {name: scratch / f"film.{name}" for name in ["mp4", "gif", "webp"]}
    facts = {name: json.loads(run(program, "stitch", session, "--to", file, "--json")) for name, file in files.items()}
    size = facts["gif"]["width"], facts["gif"]["height"]
    flags = "bicubic+accurate_rnd+full_chroma_int+full_chroma_inp"
    raw = run("ffmpeg", "-v", "fatal", "-i", files["mp4"], "-map", "0:v", "-fps_mode", "passthrough", "-vf",
              f"scale={size[0]}:{size[1]}:flags={flags}", "-pix_fmt", "rgb24", "-f", "rawvideo", "-")
    length = 3 * size[0] * size[1]
    film = [Image.frombytes("RGB", size, raw[start:start + length]) for start in range(0, len(raw), length)]
    # One picture each 100 ms: the recipe's default moves pictures to a grid of times, and drops some.
    run("ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", "10", "-i",
        "-", "-filter_complex", RECIPE, scratch / "recipe.gif", input=raw)
    times = run("ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts,duration", "-of", "csv=p=0",
                files["mp4"], text=True).split()
    middles = [(2 * int(pts) + int(duration)) / 180 for pts, duration in (line.split(",")[:2] for line in times)]
    own = likeness(shown(files["gif"]), middles, film)
    recipe = likeness(shown(scratch / "recipe.gif"), [100 * number + 50 for number in range(len(film))], film)
    return [facts["gif"]["pictures"], facts["gif"]["bytes"], (scratch / "recipe.gif").stat().st_size,
            f"{facts['gif']['bytes'] / (scratch / 'recipe.gif').stat().st_size:.2f}", f"{own[0]:.1f}", f"{recipe[0]:.1f}",
            f"{own[1]:.2f}", f"{recipe[1]:.2f}", facts["webp"]["bytes"], facts["mp4"]["bytes"]]


def main():
    program, *batches = sys.argv[1:]
    print("| session | pictures | GIF, bytes | recipe, bytes | ratio | PSNR | recipe | blurred | recipe | WebP, bytes | MP4, bytes |")
    print("|---|" + "---|" * 10)
    for batch in batches:
        with tempfile.TemporaryDirectory() as scratch:
            row = compare(Path(program).resolve(), batch, Path(scratch))
        name = Path(batch).parent.name if Path(batch).name == "jpg" else Path(batch).name
        print(f"| {name} | " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
