"""The chart of soak.py: latency, waiting batches, CPU, memory and open files over time."""

from matplotlib import pyplot, ticker

import drawing
from soak_figures import WINDOW, percentile
from soak_load import PHASES

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
ROWS = ("latency, s", "waiting batches", "cores in use", "memory, MB", "open files")


def column(panels, part):
    minutes = lambda at: (at - part.start) / 60
    latency, waiting, cores, memory, files = panels
    for panel in panels:
        for phase in range(1, PHASES, 2):
            panel.axvspan(*(edge * part.length / PHASES / 60 for edge in (phase, phase + 1)), color="0.93", lw=0)
        for restart in part.restarts:
            panel.axvline(minutes(restart.at), color="tab:red", lw=0.8, ls=":")
        panel.grid(color="0.88", lw=0.5)
        panel.set_axisbelow(True)
    for restart in part.restarts:
        waiting.annotate(restart.signal, (minutes(restart.at), 0.5), xycoords=("data", "axes fraction"), fontsize=5,
                         color="tab:red", rotation=90, va="center", ha="right")
    windows = part.windows()
    middles = [(at + WINDOW / 2) / 60 for at, _, _ in windows]
    for name, share in PERCENTILES.items():
        latency.plot(middles, [percentile(values, share) for _, values, _ in windows], lw=0.9, label=name)
    latency.set(yscale="log", title=f"{part.title}: {part.sessions} sessions, {part.arrivals:g} batches a second")
    latency.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    waiting.plot(middles, [most for _, _, most in windows], lw=0.9)
    for name, label in (("machine", "all programs, all CPUs"), ("core", "all programs on the worker's CPU"),
                        ("cpu", "worker and decoders"), ("stolen", "stolen from the worker's CPU")):
        cores.plot(*zip(*((minutes(at), used) for at, used in part.cores(name))), lw=0.9, label=label)
    at = [minutes(sample.at) for sample in part.samples]
    memory.plot(at, [sample.rss for sample in part.samples], lw=0.9, label="worker, resident")
    memory.plot(at, [sample.memory for sample in part.samples], lw=0.9, label="worker and decoders, own pages")
    files.plot(at, [sample.descriptors for sample in part.samples], lw=0.9)
    files.set_xlabel("minutes")


def draw(parts, path):
    drawing.start("soak", 8, 9)
    figure, panels = pyplot.subplots(len(ROWS), len(parts), figsize=(5.5 * len(parts), 9), sharex=True, sharey="row",
                                     layout="constrained", squeeze=False)
    for number, part in enumerate(parts):
        column(panels[:, number], part)
    for panel, label in zip(panels[:, 0], ROWS):
        panel.set_ylabel(label)
        bottom, top = panel.get_ylim()
        panel.set_ylim(*((bottom / 3, top) if label == ROWS[0] else (0, top * 1.15)))
    for panel in (panels[0, 0], panels[2, 0], panels[3, 0]):
        panel.legend(fontsize=6, ncols=3, loc="lower left")
    drawing.save(figure, path)
