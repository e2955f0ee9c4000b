#!/usr/bin/python3
"""Converts our changelog to Debian's. Usage: changelog.py CHANGELOG.md VERSION MAINTAINER DATE"""
import re
import sys
import textwrap

path, version, maintainer, date = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    newest = file.read().split("\n## ")[1]
print(f"encoder-worker ({version}) unstable; urgency=medium\n")
for change in re.split(r"^- ", newest, flags=re.M)[1:]:
    print(textwrap.fill(" ".join(change.split()), 78, initial_indent="  * ", subsequent_indent="    ",
                        break_long_words=False, break_on_hyphens=False))
print(f"\n -- {maintainer}  {date}")
