"""The details of the benchmark results: a section for each part. For page.py."""

from recipes import PRESETS, options
from sessions import CLOSE_ROUNDS, OURS
from summary import NONE, SENTRY, instructions, ratio3, sessions_of, table, title

MODES = ("require", "off")


def spread(one):
    """Returns the median of all ratios, the range of the middle half, and the ratio of the least of each."""
    rounds = sorted(one["rounds"])
    quarter = len(rounds) // 4
    return f"{one['median']:.3f}", f"{rounds[quarter]:.3f}–{rounds[-1 - quarter]:.3f}", f"{one['least']:.3f}"


def millions(row):
    """Returns the instructions of a command, in millions."""
    return f"{row['instructions'] / 1e6:.1f}" if row.get("instructions") else NONE


def method_section(counted):
    """Tells how the instructions were counted."""
    if not counted:
        return """## Instructions

This run did not count them. A dash stands for each figure that was not measured.
"""
    # A meter that counts the first frames only is valgrind: see meters.py.
    short = counted["frames"]
    scope = f"""over the first {short} frames of a session,
a finished session of a minute, and whole sessions in small batches. The worker decodes without its sandbox there, and
the virtual CPU has AVX2, but no AVX-512.""" if short else "over whole sessions,\nwith our sandboxed processes."
    return f"""## Instructions

Counted in user mode by {counted["method"]}, {scope}
The kernel's work is not in them: to start a process, to map its libraries, to write files. Times are of other runs. The
parts that have no count measure the wall clock, the worker's own profile, or the kernel.
"""


def session_section(found):
    rows = []
    for session in found:
        ours = session["rows"][OURS]
        for name, row in session["rows"].items():
            rows.append((
                f"{title(session)}: {session['frames']} frames, {session['segments']} segments", name,
                millions(row), instructions(session["rows"], name),
                f"{row['cpu']:.2f}", f"{row['cpu'] / ours['cpu']:.2f}", f"{row['wall']:.2f}",
                f"{row['bytes']:.0f}", f"{ours['bytes'] / row['bytes']:.2f}",
                f"{row['ssim']:.4f}" if row["ssim"] else "", f"{row['memory']:.0f}"))
    head = ["session", "", "M instructions a frame", "× ours", "CPU ms a frame", "× ours", "wall ms a frame",
            "bytes a frame", "ours / this", "SSIM-Y", "peak RSS, MB"]
    return f"""## Sessions

`balanced`, `--jobs 1`; the least CPU of the rounds in turn, each program in each, ours and the bare loop
{CLOSE_ROUNDS} times. SSIM-Y is against the lossless truth where there is one, else against the captured file. RSS is that of the largest
process: the worker, or its decoder.

- The recipe: `ffmpeg -y -f concat -safe 0 -i LIST {' '.join(options(PRESETS[0]))} OUT`;
  the rows "{PRESETS[1]}" have that preset.
- The bare loop decodes and encodes what we do, with the same libraries and settings, and nothing else (`limit.c`).
- JPEG: the files of the corpus; s01 and s04 have lossless originals. PNG: these originals, for RGBA with an opaque
  alpha channel. WebP: the originals, lossy, of the JPEG's quality. Large screens: the originals, or else the captured
  files, scaled, as JPEG of the session's own quality. Their truth is the scaled picture. 393×852: the originals,
  scaled, as PNG: the form and size of Sentry's SDK for iOS, which writes {SENTRY} kB a frame.

![CPU and bytes a frame](results.svg)

{table(head, rows)}"""


def sandbox_section(found):
    median, middle, least = spread(found)
    return f"""## The sandbox

Over all JPEG sessions of the corpus: {median} times the CPU of `--sandbox off`. That is the median of
{len(found['rounds'])} rounds in turn; half of them are in {middle}; of the least of each it is {least}.
Instructions: {ratio3(found)}.
"""


def decoding_section(found):
    rows = [(title(one), *(f"{cpu:.2f}" for cpu in (one["decode"], one["convert"], one["decode"] + one["convert"],
                                                    one["ffmpeg"]))) for one in found]
    return f"""## Decoding

CPU ms of a frame that differs from the one before, by the worker's own profile; the least of the rounds. Beside it,
stock ffmpeg decodes the same frames to 4:2:0 with one thread, without its start.

{table(["frames", "decode", "convert", "both", "ffmpeg"], rows)}"""


def batches_section(found):
    rows = [(f"{one['name']}: {one['batches']} batches of {one['size']} / one of {one['frames']} frames, "
             f"`--sandbox {one['sandbox']}`", *spread(one), ratio3(one)) for one in found["small"]]
    overhead = [(f"`--sandbox {mode}`", *(f"{found['overhead'][mode][place]:.2f}" for place in ("disk", "memory")))
                for mode in MODES]
    return f"""## Small batches

CPU and instructions of `run --drain --jobs 1`, start included, in turn. There is a frame a second: both ways make the
same segments.

{table(["batches", "median", "half of the rounds in", "of the least of each", "instructions"], rows)}
CPU ms of a batch of two frames, one segment, beside decoding and encoding, fsync included, the start of the worker not:

{table(["", "files on disk", "files in memory"], overhead)}"""


def jobs_section(found):
    speeds = found["throughput"]
    names = {"jobs": "two jobs of a worker / one job", "workers": "two workers / one worker"}
    pairs = [(f"{what}, `--sandbox {mode}`", speeds[mode][key]) for mode in MODES for key, what in names.items()]
    pairs.append(("two bare loops / one", speeds["loops"]))
    rows = [(what, *spread(one["speed"]), f"{one['cpu']:.2f}") for what, one in pairs]
    peaks = [(f"frames {size}", f"{peak:.0f}") for size, peak in found["memory"].items()]
    return f"""## Jobs and workers

Speed by the wall clock, `run --drain` over a spool of all JPEG sessions twice, in batches of ten frames; and the CPU
for the same work. Two bare loops do twice the work of one: they show what two cores of this machine can do at most.

{table(["", "speed, median", "half of the rounds in", "of the least of each", "CPU"], rows)}
![The ratios of all rounds](ratios.svg)

Peak RSS of `encode --jobs 2`, four batches of 15 frames:

{table(["", "MB"], peaks)}"""


def startup_section(found):
    names = {"encode": "`encode`, one batch of five equal frames", "encode by ffmpeg": "the recipe, the same frames",
             "version": "`encoder-worker --version`", "version of ffmpeg": "`ffmpeg -version`"}
    rows = [(what, f"{found[name]['least']:.1f}", f"{found[name]['median']:.1f}", millions(found[name]))
            for name, what in names.items()]
    return f"""## Start

{table(["", "CPU ms, least", "median", "M instructions"], rows)}"""


def finished_section(found):
    names = {
        "stitch": "`stitch`", "stitch by ffmpeg": "`ffmpeg -f concat -c copy`",
        "hls": "`stitch --format hls`", "hls by ffmpeg": "`ffmpeg -f concat -c copy -f hls`",
        "verify": "`verify`", "verify by ffmpeg": "`ffmpeg -f null`, of the film",
        "reencode": "`reencode --quality small`", "reencode by ffmpeg": "`ffmpeg -preset superfast`, of the film"}
    rows = []
    for name, what in names.items():
        row = found["rows"][name]
        rows.append((what, f"{row['cpu']:.2f}", f"{row['wall']:.2f}", f"{row['memory']:.0f}",
                     f"{row['bytes'] / 1e6:.1f}" if row["bytes"] else "", millions(row)))
    return f"""## A finished session of an hour

{found['segments']} segments, {found['bytes'] / 1e6:.0f} MB. The least CPU and wall clock of the rounds in turn.

{table(["", "CPU s", "wall s", "peak RSS, MB", "MB written", "M instructions"], rows)}"""


def scale_section(found):
    rows = []
    for few, many, cpu in (
            ("one tiny picture, {few} batches waiting", "the same, {many} waiting", found["waiting"]),
            ("one tiny segment, a new session", "the same, a session of {many} segments", found["segments"])):
        rows += [(few.format(**cpu), f"{cpu['cpu'][0]:.2f}", ""),
                 (many.format(**cpu), f"{cpu['cpu'][1]:.2f}", f"{cpu['cpu'][1] / cpu['cpu'][0]:.2f}")]
    return f"""## Long queues and long sessions

{table(["", "CPU ms a batch", "× the row above"], rows)}"""


def profile_section(found):
    return f"""## A profile

{found['session']} in batches of ten frames, `run --drain --profile --jobs 1`.

```
{found['table']}
```
"""


SECTIONS = {"sandbox": sandbox_section, "decoding": decoding_section, "batches": batches_section,
            "jobs": jobs_section, "startup": startup_section, "finished": finished_section, "scale": scale_section,
            "profile": profile_section}


def text(parts, counted):
    found = sessions_of(parts)
    return "\n".join([method_section(counted)] + ([session_section(found)] if found else [])
                     + [make(parts[part]) for part, make in SECTIONS.items() if part in parts])
