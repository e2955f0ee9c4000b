"""Writes charts as small SVGs: one line an element, styles once, coordinates as steps of a tenth of a point."""

import io
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3, "z": 0}


def start(name, size, title):
    """Sets the style of a chart. The name keeps the IDs of its parts the same."""
    from matplotlib import pyplot
    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name, "font.size": size, "axes.titlesize": title})


def save(figure, path):
    """Writes a figure, and closes it."""
    from matplotlib import pyplot
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    Path(path).write_text(small(text.getvalue()))


def small(text):
    """Returns an SVG of matplotlib with the same shapes and texts."""
    for prefix, space in (("", SVG), ("xlink", LINK)):
        xml.register_namespace(prefix, space)
    root = xml.fromstring(text)
    links = {link[1:] for one in root.iter() for link in [one.get(f"{{{LINK}}}href", "")] if link}
    styles = {}
    for one in list(root.iter()):
        one.tail = "\n"
        if one.get("id") not in links and not one.tag.endswith("clipPath"):
            one.attrib.pop("id", None)
        if one.tag.endswith("path"):
            if one.get("d"):
                one.set("d", steps(one.get("d")))
        if "style" in one.attrib:
            rule = re.sub("('DejaVu Sans'), .*, sans-serif", r"\1, sans-serif", one.attrib.pop("style"))
            one.set("class", styles.setdefault(rule, f"s{len(styles)}"))
        for key in one.attrib.keys() & {"x", "y", "transform"}:
            one.set(key, re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}", one.get(key)))
        if one.tag.endswith("}g") or one is root:
            one.text = "\n"
            one[:] = [part for child in one for part in parts(child)]
    style = xml.Element(f"{{{SVG}}}style")
    style.text = "*{stroke-linejoin:round}" + "".join(
        f"\n.{name}{{{rule.replace('; ', ';').replace(': ', ':')}}}" for rule, name in styles.items())
    style.tail = "\n"
    root.insert(0, style)
    return xml.tostring(root, encoding="unicode").rstrip() + "\n"


def parts(one):
    """Yields an element, or those of a group that has no meaning. Leaves out metadata and other styles."""
    if one.tag.endswith("metadata") or one.tag.endswith("defs") and one[:] and one[0].tag.endswith("style"):
        return
    if one.tag.endswith("}g") and not one.attrib.keys() - {"id"}:
        for child in one:
            yield from parts(child)
    else:
        yield one


def steps(path):
    """Returns a path with relative coordinates."""
    words = re.findall(r"[A-Za-z]|[-+.\de]+", path)
    # Marks are curves of a few points.
    scale = 100 if "C" in words else 10
    result, at, first, last = [], (0, 0), (0, 0), None
    while words:
        command = words.pop(0)
        numbers = [round(float(words.pop(0)) * scale) for _ in range(2 * POINTS[command])]
        points = list(zip(numbers[::2], numbers[1::2]))
        if command == "L" and points[0] == at:
            continue
        moves = " ".join(f"{(x - at[0]) / scale:g} {(y - at[1]) / scale:g}" for x, y in points)
        result.append(f"{'' if command == last and command != 'z' else command.lower()}{moves}")
        at, last = points[-1] if points else first, command
        first = at if command == "M" else first
    return " ".join(result).replace(" -", "-")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(small(Path(name).read_text()))
