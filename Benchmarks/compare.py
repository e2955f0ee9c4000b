"""Compares two builds of the worker: the instructions of each command, and its CPU in turn. For bench.py --base.

Valgrind counts without the sandbox, whole sessions here. A count of the same build differs by less than .001.
"""

import sys
from functools import partial

import details
import finished
import startup
from batches import SMALL, drained, whole
from measure import at_once, in_turn, ratios
from meters import Clock
from pictures import chosen
from sessions import encode
from summary import KINDS, table, title

PARTS = (*KINDS, "batches", "startup", "finished")


def commands(bench, part):
    """Returns the commands of a part by name: functions of a meter, a program and a directory of their own."""
    if part in KINDS:
        return {f"`encode`, {title(one._asdict())}": lambda meter, worker, new, folder=one.folder: encode(
            meter, worker, folder, new) for one in bench.sessions(part)}
    if part == "batches":
        return {f"`run`, batches of {SMALL}, {path.name}": lambda meter, worker, new, frames=whole(path): drained(
            meter, worker, frames, SMALL, new) for path in chosen(bench.paths, "s01", "s04")}
    if part == "startup":
        idle = startup.idle_frames(chosen(bench.paths, "s02")[0], bench.scratch)
        return {"`encode`, five idle frames": lambda meter, worker, new: encode(meter, worker, idle, new),
                "`--version`": lambda meter, worker, new: meter.run([meter.program(worker), "--version"])}
    session = finished.encode(bench.worker, bench.paths[0], bench.scratch, finished.MINUTE)

    def of(name, meter, worker, new):
        programs = {name: one for some in finished.commands(meter, worker, session) for name, one in some.items()}
        return finished.into(new, programs[name])

    return {f"`{name}`, a minute": partial(of, name) for name in ("stitch", "hls", "verify", "reencode")}


def text(bench, base, parts):
    """Returns a table of the commands: instructions of the base and of this build, and their ratios."""
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        sys.exit(f"cannot compare {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    rows = []
    for part in parts:
        for what, command in commands(bench, part).items():
            print(f"{what} …", file=sys.stderr)
            old, new = (partial(command, worker=worker, new=bench.scratch / name)
                        for name, worker in (("base", base), ("head", bench.worker)))
            used = in_turn(bench.rounds, {"base": partial(old, Clock()), "head": partial(new, Clock())})
            counts = [one.instructions for one in at_once([partial(old, bench.meter), partial(new, bench.meter)])]
            cpu = ratios([one.cpu for one in used["head"]], [one.cpu for one in used["base"]])
            rows.append((what, *(f"{count / 1e6:.1f}" for count in counts), f"{counts[1] / counts[0]:.4f}",
                         *details.spread(cpu)))
    head = ["", "M instructions: base", "this build", "this build / base", "CPU: this build / base",
            "half of the rounds in", "of the least of each"]
    return f"Instructions by {bench.meter.name}, CPU of {bench.rounds} rounds in turn.\n\n{table(head, rows)}"
