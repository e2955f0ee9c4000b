"""Measures how much encoded pictures are like the captured ones: SSIM of luma."""

import json
import re
import subprocess


def luma(source, target, picked=None, size=None):
    """Writes the luma planes of a video's pictures, full range; of the pictures at the indexes `picked`, if given."""
    filters = [] if picked is None else ["select='" + "+".join(f"eq(n\\,{n})" for n in picked) + "'"]
    filters += ["scale=out_color_matrix=bt601:out_range=pc,format=yuvj444p", "extractplanes=y"]
    if size:
        filters.append(f"crop={size[0]}:{size[1]}:0:0")
    with open(target, "ab") as file:
        subprocess.run(["ffmpeg", "-v", "error", *source, "-map", "0:v", "-vf", ",".join(filters), "-fps_mode",
                        "passthrough", "-f", "rawvideo", "-"], stdout=file, check=True)


def ssim(coded, truth, size):
    """Returns the SSIM of each pair of pictures."""
    raw = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{size[0]}x{size[1]}", "-r", "1"]
    command = ["ffmpeg", "-v", "error", *raw, "-i", coded, *raw, "-i", truth]
    report = subprocess.run([*command, "-lavfi", "ssim=stats_file=-", "-f", "null", "-"], stdout=subprocess.PIPE,
                            text=True, check=True).stdout
    return [float(value) for value in re.findall(r" Y:([\d.]+)", report)]


def segments_of(output):
    manifests = sorted(output.glob("segment-*.json"))
    return [json.loads(manifest.read_text()) for manifest in manifests]


def truth_of(captured):
    """Returns the reference file of a captured file: the lossless original if there is one, else the file itself."""
    lossless = captured.parent.parent / "png" / (captured.stem + ".png")
    return lossless if lossless.exists() else captured


def similarity(segments, videos, frames, folder):
    """Returns the SSIM of each frame. `videos` has, for each segment, a file and the indexes of its frames.

    The luma of the references stays in `folder` for the next video.
    """
    coded, listed = folder / "coded.y", folder / "truth.txt"
    values = []
    for segment, (video, picked) in zip(segments, videos):
        size = (segment["width"], segment["height"])
        truth = folder / f"truth-{segment['startMs']}.y"
        if not truth.exists():
            listed.write_text("".join(
                f"file '{truth_of(frames[frame['source']])}'\nduration 1\n" for frame in segment["frames"]))
            luma(["-f", "concat", "-safe", "0", "-i", listed], truth)
        coded.unlink(missing_ok=True)
        luma(["-i", video], coded, picked, size)
        values += ssim(coded, truth, size)
    shown = sum(len(segment["frames"]) for segment in segments)
    assert len(values) == shown, f"{len(values)} pictures, not {shown}"
    return values


def instants(video):
    """Returns the times of a video's pictures in ticks of its time base."""
    probe = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts", "-of",
                            "csv=p=0", video], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [int(line.strip(",")) for line in probe.split()]


def our_places(segment, video):
    known = instants(video)
    start, places = 0, []
    for frame in segment["frames"]:
        places.append(known.index(start * 90))
        start += frame["holdMs"]
    return places


def recipe_places(segments, parts):
    return [(video, list(range(len(segment["frames"])))) for segment, video in zip(segments, parts)]


def film_places(segments, frames, film):
    """Returns the places of our frames in a film of all captured frames; None if it lacks or scales some of them."""
    sizes = {(segment["width"], segment["height"]) for segment in segments}
    # The recipe ends with a second picture of the last frame, unless ffmpeg drops it.
    if len(sizes) > 1 or len(instants(film)) not in (len(frames), len(frames) + 1):
        return None
    order = {name: place for place, name in enumerate(frames)}
    return [(film, [order[frame["source"]] for frame in segment["frames"]]) for segment in segments]
