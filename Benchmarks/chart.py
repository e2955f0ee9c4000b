"""The charts of the benchmark results. For page.py."""

from matplotlib import pyplot, ticker

import drawing
from sessions import LIMIT, OURS, SEGMENT, SESSION
from summary import sessions_of

COLOURS = {OURS: "tab:blue", LIMIT: "0.75", SEGMENT: "tab:red", SESSION: "tab:orange"}
MODES = {"require": "", "off": ", sandbox off"}


def label(session):
    return f"{session['kind']} {session['name']}".replace(" ", "\n")


def sessions(parts, target):
    """Draws CPU and bytes of each session, and labels our results."""
    drawing.start("results", 9, 10)
    found = sessions_of(parts)
    figure, panels = pyplot.subplots(2, 1, figsize=(10, 6.4), layout="constrained")
    for panel, (key, unit, title) in zip(panels, (("cpu", 1, "CPU ms a frame"), ("bytes", 1_000, "kB a frame"))):
        for place, name in enumerate(COLOURS):
            bars = [(number + (place - 1.5) * 0.2, session["rows"][name][key] / unit)
                    for number, session in enumerate(found) if name in session["rows"]]
            drawn = panel.bar(*zip(*bars), 0.19, label=name, color=COLOURS[name])
            if name == OURS:
                panel.bar_label(drawn, fmt="%.1f", fontsize=8, padding=1)
        panel.set(title=title, yscale="log", xticks=range(len(found)), xlim=(-0.5, len(found) - 0.5))
        panel.set_xticklabels(map(label, found), fontsize=7)
        panel.set_ylim(top=2 * panel.get_ylim()[1])
        panel.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
        panel.grid(axis="y", color="0.92")
        panel.set_axisbelow(True)
    panels[0].legend(ncols=4, fontsize=8, loc="upper right", frameon=False)
    drawing.save(figure, target)


def ratios(parts, target):
    """Draws the ratio of each round, its median, and the wanted ratio: how far the rounds lie apart."""
    drawing.start("results", 9, 10)
    speeds = parts["jobs"]["throughput"]
    names = {"jobs": "two jobs / one", "workers": "two workers / one"}
    speed = [(what + MODES[mode], speeds[mode][key]["speed"]) for key, what in names.items() for mode in MODES]
    cost = [(f"{one['name']}, batches of {one['size']} / one{MODES[one['sandbox']]}", one)
            for one in parts["batches"]["small"]] + [("sandbox / none", parts["sandbox"])]
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 2.4), layout="constrained")
    for panel, rows, wanted, title in ((panels[0], cost, 1.06, "CPU (wanted for batches: 1.06 at most)"),
                                       (panels[1], [*speed, ("two bare loops / one", speeds["loops"]["speed"])], 1.9,
                                        "speed (wanted: 1.9 at least)")):
        for place, (_, one) in enumerate(rows):
            panel.plot(one["rounds"], [place] * len(one["rounds"]), "o", color="tab:blue", alpha=0.4, markersize=4)
            panel.plot([one["median"]], [place], "|", color="black", markersize=14)
        panel.axvline(wanted, color="tab:green", linewidth=1)
        panel.set(title=title, yticks=range(len(rows)), ylim=(len(rows) - 0.5, -0.5))
        panel.set_yticklabels([what for what, _ in rows], fontsize=8)
        panel.grid(axis="x", color="0.92")
        panel.set_axisbelow(True)
    drawing.save(figure, target)
