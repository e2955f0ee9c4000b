"""The summary of the results: sessions beside the recipe, and the wanted figures beside those found. For page.py."""

import re

from sessions import OURS, SEGMENT, SESSION

KINDS = ("jpeg", "png", "webp", "large")
RECIPES = "one ffmpeg a segment", "one ffmpeg a session"


def table(head, rows):
    """Returns a table of texts. Columns of numbers are aligned to the right."""
    rows = list(rows)
    rules = ["--:" if all(re.fullmatch(r"[-≤≥+−–×\d. ]*", cell) for cell in column) else "---" for column in zip(*rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rules, *rows]) + "\n"


def sessions_of(parts):
    return [session for kind in KINDS for session in parts.get(kind, [])]


def title(session):
    name, kind = session["name"], session["kind"]
    return f"{kind} {name}" if kind.isalpha() else f"JPEG {name}, {kind}"


def number(value):
    """Returns a number without decimals from 20 on, and else with one."""
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}"


def likeness(row, digits):
    return f"{row['ssim']:.{digits}f}" if row["ssim"] else "–"


def beside(session):
    """Returns a session's row: CPU, bytes and likeness of ours and of the recipes."""
    rows = [session["rows"][name] for name in (OURS, SEGMENT, SESSION)]
    cpu = [f"{row['cpu']:.1f}" for row in rows]
    times = [f"{row['cpu'] / rows[0]['cpu']:.1f}" for row in rows[1:]]
    size = [number(row["bytes"] / 1_000) for row in rows]
    return [title(session), *cpu, *times, *size, *(likeness(row, 4) for row in rows)]


def decoding_rows(found):
    for one in found:
        if one["kind"] in ("PNG", "WebP"):
            yield (f"decode and convert a frame, {title(one)}, CPU ms", "≤ 5" if one["kind"] == "PNG" else "",
                   f"{one['decode'] + one['convert']:.1f}", f"ffmpeg, one thread: {one['ffmpeg']:.1f}")


def batch_rows(found):
    ratio = {(one["name"], one["sandbox"]): one for one in found["small"]}
    for (name, mode), one in ratio.items():
        if mode == "require":
            yield (f"{one['batches']} batches of {one['size']} frames / one of {one['frames']}, CPU, {name}", "≤ 1.06",
                   f"{one['median']:.3f}", f"`--sandbox off`: {ratio[name, 'off']['median']:.3f}")
    for place, what in (("disk", "on disk"), ("memory", "in memory")):
        yield (f"a batch of two frames beside decoding and encoding, files {what}, CPU ms", "≤ 1.5",
               f"{found['overhead']['require'][place]:.2f}", f"`--sandbox off`: {found['overhead']['off'][place]:.2f}")


def job_rows(found):
    speed = found["throughput"]
    loops = f"two bare loops: {speed['loops']['speed']['median']:.2f}"
    for key, what in (("jobs", "two jobs of a worker / one job"), ("workers", "two workers / one worker")):
        yield (f"{what}, speed", "≥ 1.9", f"{speed['require'][key]['speed']['median']:.2f}",
               f"`--sandbox off`: {speed['off'][key]['speed']['median']:.2f}; {loops}")
    for (size, peak), wanted in zip(found["memory"].items(), (80, 150)):
        yield f"peak RSS, MB, two jobs, frames {size}", f"≤ {wanted}", f"{peak:.0f}", ""


def startup_rows(found):
    yield ("`encode` of one batch of five idle frames, CPU ms", "≤ 45", f"{found['encode']['least']:.1f}",
           f"the recipe: {found['encode by ffmpeg']['least']:.1f}")


def large_rows(found):
    def each(compute):
        return [compute(session["rows"][OURS], session["rows"][SEGMENT]) for session in found]

    times = min(each(lambda ours, theirs: theirs["cpu"] / ours["cpu"]))
    share = max(each(lambda ours, theirs: ours["bytes"] / theirs["bytes"]))
    better = min(each(lambda ours, theirs: ours["ssim"] - theirs["ssim"]))
    yield f"large screens, {RECIPES[0]} / ours, CPU, the least of all", "≥ 3", f"{times:.2f}", ""
    yield f"large screens, ours / {RECIPES[0]}, bytes, the most of all", "≤ .25", f"{share:.3f}", ""
    yield f"large screens, ours − {RECIPES[0]}, SSIM-Y, the least of all", "≥ 0", f"{better:+.4f}", ""


def finished_rows(found):
    commands = {"stitch": "`stitch`", "hls": "`stitch --format hls`", "verify": "`verify`",
                "reencode": "`reencode --quality small`"}
    for name, what in commands.items():
        ours, theirs = (found["rows"][key]["cpu"] for key in (name, f"{name} by ffmpeg"))
        yield f"{what}, an hour, CPU s", "", f"{ours:.2f}", f"ffmpeg: {theirs:.2f}"


WANTED = {"decoding": decoding_rows, "batches": batch_rows, "jobs": job_rows, "startup": startup_rows,
          "large": large_rows, "finished": finished_rows}


def text(parts):
    result = "## Summary\n"
    found = sessions_of(parts)
    if found:
        head = ["session", "CPU ms a frame: ours", *RECIPES, *(f"{recipe}, × ours" for recipe in RECIPES),
                "kB a frame: ours", *RECIPES, "SSIM-Y: ours", *RECIPES]
        result += f"""
CPU, bytes and likeness of each session, beside stock ffmpeg over the same frames in the same run. One ffmpeg a session
scales the frames of a rotated screen; its likeness is not measured there.

{table(head, map(beside, found))}"""
    rows = [row for part, make in WANTED.items() if part in parts for row in make(parts[part])]
    if rows:
        result += f"""
Everything else that was measured beside a wanted figure, or beside ffmpeg:

{table(["what", "wanted", "found", "beside it"], rows)}"""
    return result


def readme(parts):
    """Returns the rows of figures in the table of the README, by their labels."""
    found = {title(session): session["rows"] for session in sessions_of(parts)}
    jpeg = ("JPEG s01", "JPEG s04", "JPEG s02")
    other = ("PNG s01 RGB", "WebP s01", "JPEG s01, 1440×3120")

    def row(names, show):
        return [", ".join(show(found[name][program]) for name in names) for program in (OURS, SEGMENT, SESSION)]

    def cpu(one):
        return number(one["cpu"])

    def size(one):
        return number(one["bytes"] / 1_000)

    def ssim(one):
        return likeness(one, 3)

    rows = {
        "CPU ms a frame: reading, typing, idle screen": row(jpeg, cpu),
        "CPU ms a frame of reading: PNG, WebP, 1440×3120": row(other, cpu),
        "kB a frame: reading, typing, idle screen": row(jpeg, size),
        "kB a frame of reading: PNG, WebP, 1440×3120": row(other, size),
        "similarity to the source (SSIM): reading, typing, idle screen": row(jpeg, ssim),
        "similarity of reading: PNG, WebP, 1440×3120": row(other, ssim),
    }
    return {label: f"| {' | '.join([label, *cells])} |" for label, cells in rows.items()}


def sandbox(parts):
    """Returns the phrase of docs/security.md."""
    return f"`make bench` measured {100 * (parts['sandbox']['median'] - 1):.0f} % more CPU than with `off`"
