"""The summary of the results: sessions beside the recipe, and the wanted figures beside those found. For page.py.

A dash stands for a figure that was not measured.
"""

import re

from recipes import PRESETS
from sessions import OURS, SEGMENTS, SESSIONS

KINDS = ("jpeg", "png", "webp", "large", "phone")
# The recipes' rows, and their labels.
RECIPES = {names[preset]: f"one ffmpeg {what}" + f", {preset}" * (preset != PRESETS[0])
           for names, what in ((SEGMENTS, "a segment"), (SESSIONS, "a session")) for preset in PRESETS}
SEGMENT, *_ = RECIPES
# The kB a frame that Sentry's SDK for iOS writes at 393×852.
SENTRY = "2–4"
NONE = "–"


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


def likeness(rows, name):
    return f"{rows[name]['ssim']:.4f}" if rows.get(name, {}).get("ssim") else NONE


def size(rows, name):
    return number(rows[name]["bytes"] / 1_000) if name in rows else NONE


def times(one, other, key="instructions"):
    """Returns a ratio."""
    return number(one[key] / other[key]) if one.get(key) and other.get(key) else NONE


def instructions(rows, name):
    """Returns the instructions of a program beside ours."""
    return times(rows.get(name, {}), rows[OURS])


def cpu(rows, name):
    """Returns the CPU of a program beside ours: the range of the rounds."""
    rounds = rows.get(name, {}).get("rounds")
    return f"{min(rounds):.1f}–{max(rounds):.1f}" if rounds else NONE


def costs(session):
    """Returns a session's row: instructions and CPU of ours and of the recipes."""
    rows = session["rows"]
    counted = rows[OURS].get("instructions")
    ours = f"{counted / 1e6:.0f}" if counted else NONE
    return [title(session), ours, *(instructions(rows, name) for name in RECIPES),
            f"{rows[OURS]['cpu']:.1f}", *(cpu(rows, name) for name in RECIPES)]


def pictures(session):
    """Returns a session's row: bytes and likeness of ours and of the recipes."""
    rows, names = session["rows"], (OURS, *RECIPES)
    return [title(session), *(size(rows, name) for name in names), *(likeness(rows, name) for name in names)]


def decoding_rows(found):
    for one in found:
        if one["kind"] in ("PNG", "WebP"):
            yield (f"decode and convert a frame, {title(one)}, CPU ms", "≤ 5" if one["kind"] == "PNG" else "",
                   f"{one['decode'] + one['convert']:.1f}", f"ffmpeg, one thread: {one['ffmpeg']:.1f}")


def ratio3(one):
    """Returns the ratio of instructions of two ways to do the same."""
    return f"{one['instructions']:.3f}" if one.get("instructions") else NONE


def batch_rows(found):
    ratio = {(one["name"], one["sandbox"]): one for one in found["small"]}
    for (name, mode), one in ratio.items():
        if mode == "require":
            yield (f"{one['batches']} batches of {one['size']} frames / one of {one['frames']}, CPU, {name}", "≤ 1.06",
                   f"{one['median']:.3f}", f"`--sandbox off`: {ratio[name, 'off']['median']:.3f}, instructions: "
                   f"{ratio3(ratio[name, 'off'])}")
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
    ours, theirs = found["encode"], found["encode by ffmpeg"]
    yield ("`encode` of one batch of five idle frames, CPU ms", "≤ 45", f"{ours['least']:.1f}",
           f"the recipe: {theirs['least']:.1f}; its instructions, × ours: {times(theirs, ours)}")


def large_rows(found):
    def each(compute):
        return [compute(session["rows"][OURS], session["rows"][SEGMENT]) for session in found]

    cost = min(each(lambda ours, theirs: theirs["cpu"] / ours["cpu"]))
    counts = each(lambda ours, theirs: theirs.get("instructions", 0) / ours.get("instructions", 1))
    least = f"instructions: {min(counts):.2f}" if all(counts) else ""
    share = max(each(lambda ours, theirs: ours["bytes"] / theirs["bytes"]))
    better = min(each(lambda ours, theirs: ours["ssim"] - theirs["ssim"]))
    recipe = RECIPES[SEGMENT]
    yield f"large screens, {recipe} / ours, CPU, the least of all", "≥ 3", f"{cost:.2f}", least
    yield f"large screens, ours / {recipe}, bytes, the most of all", "≤ .25", f"{share:.3f}", ""
    yield f"large screens, ours − {recipe}, SSIM-Y, the least of all", "≥ 0", f"{better:+.4f}", ""


def phone_rows(found):
    for session in found:
        yield f"{title(session)}, kB a frame", "", size(session["rows"], OURS), f"Sentry's SDK for iOS: {SENTRY}"


def finished_rows(found):
    commands = {"stitch": "`stitch`", "hls": "`stitch --format hls`", "verify": "`verify`",
                "reencode": "`reencode --quality small`"}
    # The length of the session whose instructions were counted.
    over = f" for {found['counted']} s" if "counted" in found else ""
    for name, what in commands.items():
        ours, theirs = (found["rows"][key] for key in (name, f"{name} by ffmpeg"))
        yield (f"{what}, an hour, CPU s", "", f"{ours['cpu']:.2f}",
               f"ffmpeg: {theirs['cpu']:.2f}; its instructions{over}, × ours: {times(theirs, ours)}")


WANTED = {"decoding": decoding_rows, "batches": batch_rows, "jobs": job_rows, "startup": startup_rows,
          "large": large_rows, "phone": phone_rows, "finished": finished_rows}


def text(parts):
    result = "## Summary\n"
    found = sessions_of(parts)
    if found:
        recipes = RECIPES.values()
        result += f"""
Each session beside stock ffmpeg, over the same frames in the same run. The instructions of user mode are the same in
each run; CPU time has the kernel's work, too, and is as good as the machine is quiet. So the ratios of CPU are ranges
of the rounds.

{table(["session", "M instructions a frame: ours", *(f"× ours: {one}" for one in recipes),
        "CPU ms a frame: ours", *(f"CPU × ours: {one}" for one in recipes)], map(costs, found))}
Bytes and likeness. One ffmpeg a session scales the frames of a rotated screen; its likeness is not measured there.

{table(["session", "kB a frame: ours", *recipes, "SSIM-Y: ours", *recipes], map(pictures, found))}"""
    rows = [row for part, make in WANTED.items() if part in parts for row in make(parts[part])]
    if rows:
        result += f"""
Everything else that was measured beside a wanted figure, or beside ffmpeg:

{table(["what", "wanted", "found", "beside it"], rows)}"""
    return result


def readme(parts):
    """Returns the rows of figures in the table of the README: those that a busy machine does not change."""
    found = {title(session): session["rows"] for session in sessions_of(parts)}
    sessions, screens = ("JPEG s01", "JPEG s04", "JPEG s02"), "reading, typing, idle screen"
    first, second = ([names[preset] for names in (SEGMENTS, SESSIONS)] for preset in PRESETS)
    preset = f"with `-preset {PRESETS[1]}`"

    def row(recipes, show):
        cells = [[show(found[name], program) if name in found else NONE for name in sessions]
                 for program in (OURS, *recipes)]
        return [NONE if set(cell) == {NONE} else ", ".join(cell) for cell in cells]

    def beside(recipes):
        return ["1", *row(recipes, instructions)[1:]]

    rows = {
        f"instructions, × ours: {screens}": beside(first),
        f"instructions {preset}, × ours: {screens}": beside(second),
        f"kB a frame: {screens}": row(first, size),
        f"kB a frame {preset}: {screens}": row(second, size),
    }
    # A row without a figure to compare with says nothing.
    return "".join(f"| {' | '.join([label, *cells])} |\n" for label, cells in rows.items() if {*cells[1:]} != {NONE})


def sandbox(parts):
    """Returns the phrase of docs/security.md: the range of the middle half of the rounds."""
    rounds = sorted(parts["sandbox"]["rounds"])
    quarter = len(rounds) // 4
    low, high = (round(100 * (one - 1)) for one in (rounds[quarter], rounds[-1 - quarter]))
    return f"`make bench` measured {low} to {high} % more CPU than with `off`"
