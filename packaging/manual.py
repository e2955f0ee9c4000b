#!/usr/bin/python3
"""Makes the manual page, encoder-worker(1), from the program's help. Usage: manual.py PROGRAM >encoder-worker.1"""
import json
import os
import re
import subprocess
import sys
import textwrap
import time

FILES = [
    ("/etc/encoder-worker.conf", "settings of the service, where the Debian package is installed"),
    ("/var/lib/encoder-worker", "the spool of the service"),
]


EXAMPLE = """{ "version": 1, "session": "9f0c2a", "intervalMs": 1000,
  "frames": [ { "file": "0001.jpg", "timeMs": 1767859512340,
                "masks": [ { "x": 12, "y": 300, "width": 351, "height": 44 } ] } ] }"""
KEYS = [
    ("version", "1. Required."),
    ("session", "The session ID. The default is the batch's name up to the first @."),
    ("intervalMs", "The nominal time between captures in milliseconds. The default is 1000, or the median distance."),
    ("endMs", "The time when the last frame leaves the screen, in unix milliseconds."),
    ("capture", "interval, or onChange for a recorder that captures only when something changes."),
    ("final", "true: the session ends with this batch."),
    ("frames", "The files and their capture times in unix milliseconds. The default is all files that are named by their capture."),
    ("masks", "Rectangles of a frame that nobody may see, in pixels."),
    ("metadata", "Any JSON up to 64 KiB, copied into the manifests."),
]


def text(words):
    """Escapes text for mdoc, one sentence a line, so that no line is read as a request."""
    lines = []
    for sentence in re.split(r"(?<=[.?!]) (?=[A-Z(])", " ".join(words.split())):
        lines += textwrap.wrap(sentence, 76, break_long_words=False, break_on_hyphens=False)
    return "\n".join(escaped(line) for line in lines)


def escaped(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line[:1] in (".", "'") else line


def argument(words):
    """Quotes one argument of a macro."""
    return '"' + escaped(words).replace('"', '\\(dq') + '"'


def shown(command, kinds):
    return [a for a in command.get("arguments", []) if a["shouldDisplay"] and a["kind"] in kinds]


def long_name(option):
    return next(n["name"] for n in option["names"] if n["kind"] == "long")


def option_head(option):
    names = sorted(option["names"], key=lambda n: n["kind"] != "short")
    flags = [("Fl " + n["name"]) if n["kind"] == "short" else "Fl \\-" + escaped(n["name"]) for n in names]
    value = "" if option["kind"] == "flag" else " Ar " + argument(option["valueName"])
    return " , ".join(flags) + value


def synopsis(path, command):
    lines = [".Nm", ".Cm " + " ".join(path)]
    for option in shown(command, ["option"]):
        if not option["isOptional"]:
            lines.append(".Fl \\-" + escaped(long_name(option)) + " Ar " + argument(option["valueName"]))
    lines.append(".Op Ar options")
    for positional in shown(command, ["positional"]):
        name = "Ar " + argument(positional["valueName"]) + (" ..." if positional["isRepeating"] else "")
        lines.append(".Op " + name if positional["isOptional"] else "." + name)
    return "\n".join(lines)


def paragraphs(discussion):
    """Formats a text: indented lines stay as they are, and the rest is running text."""
    for part in filter(None, discussion.strip("\n").split("\n\n")):
        for block in re.findall(r"(?:^  .*\n?)+|(?:^(?!  ).*\n?)+", part, re.M):
            lines = block.rstrip("\n").split("\n")
            if block.startswith("  "):
                yield ".Bd -literal\n" + "\n".join(escaped(line[2:]) for line in lines) + "\n.Ed"
            else:
                yield "\n.Pp\n".join(text(line) for line in lines)


def options(command, order):
    """Prints arguments and options, in the order of the command's own help."""
    described = [o for o in shown(command, ["option", "flag"]) if long_name(o) not in ("help", "version")]
    described.sort(key=lambda option: order.index(long_name(option)))
    print(".Bl -tag -width Ds")
    for positional in shown(command, ["positional"]):
        print(".It Ar " + argument(positional["valueName"]) + "\n" + text(positional.get("abstract", "")))
    for option in described:
        print(".It " + option_head(option))
        usual = option.get("defaultValue")
        print(text(option.get("abstract", "") + (f" (default: {usual})" if usual else "")))
    print(".El")


def leaves(command, path):
    children = [c for c in command.get("subcommands", []) if c["commandName"] != "help" and c["shouldDisplay"]]
    if not children:
        yield path, command
    for child in children:
        yield from leaves(child, path + [child["commandName"]])


def section(name):
    print(".Sh " + name)


def main():
    program = sys.argv[1]
    root = json.loads(subprocess.run([program, "--experimental-dump-help"], check=True, capture_output=True).stdout)
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    command = root["command"]
    date = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    print(f".Dd {time.strftime('%B', date)} {date.tm_mday}, {date.tm_year}\n.Dt ENCODER-WORKER 1\n.Os \"{version}\"")
    section("NAME")
    print(".Nm encoder-worker\n.Nd " + text(command["abstract"].rstrip(".")))
    section("SYNOPSIS")
    for path, leaf in leaves(command, []):
        print(synopsis(path, leaf))
    section("DESCRIPTION")
    rest, status = [], ""
    for paragraph in paragraphs(command["discussion"]):
        if paragraph.startswith("Exit status: "):
            status = paragraph.removeprefix("Exit status: ")
        else:
            rest.append(paragraph)
    print("\n.Pp\n".join(rest))
    section("COMMANDS")
    for path, leaf in leaves(command, []):
        print(".Ss " + " ".join(path) + "\n" + text(leaf["abstract"]))
        for paragraph in paragraphs(leaf.get("discussion", "")):
            print(".Pp\n" + paragraph)
        help = subprocess.run([program, "help", *path], check=True, capture_output=True, text=True).stdout
        print(".Pp\nExample:\n.Dl " + escaped(re.search(r"^EXAMPLE: (.*)$", help, re.M)[1]))
        options(leaf, re.findall(r"^  (?:-\w, )?--([\w-]+)", help, re.M))
    section("BATCH.JSON")
    print(text("A native batch is a directory or a tar of images and a batch.json:") + "\n.Bd -literal\n"
          + "\n".join(escaped(line) for line in EXAMPLE.split("\n")) + "\n.Ed\n.Bl -tag -width Ds")
    for key, meaning in KEYS:
        print(f".It Va {key}\n{text(meaning)}")
    print(".El")
    section("ENVIRONMENT")
    print(".Bl -tag -width Ds\n.It Ev ENCODER_WORKER_CONFIG\n"
          "The file of settings, where no\n.Fl \\-config\nnames one.\n"
          ".It Ev ENCODER_WORKER_ Ns Ar OPTION\n"
          "The value of an option: its name in capitals, with _ for \\-, as in\n.Ev ENCODER_WORKER_MAX_HOLD .\n.El")
    section("FILES")
    print(".Bl -tag -width Ds")
    for path, what in FILES:
        print(f".It Pa {path}\n{text(what)}")
    print(".El")
    section("EXIT STATUS")
    print(status)
    section("SEE ALSO")
    print(".Xr ffmpeg 1 ,\n.Xr systemd.service 5")


main()
