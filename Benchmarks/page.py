#!/usr/bin/python3
"""Writes the page of benchmark results, and the figures that other pages quote, from results.json.

    Benchmarks/page.py            writes RESULTS.md, and the quoted figures in README.md and docs/
    Benchmarks/page.py --check    compares them; prints each difference, and exits with 1 if there is any

bench.py makes results.json and the charts.
"""

import json
import re
import sys
from pathlib import Path

import details
import summary

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "Benchmarks" / "results.json", ROOT / "Benchmarks" / "RESULTS.md"


def text(results):
    """Returns the page. It has the parts that were measured."""
    minutes = ", ".join(f"{part} {taken:.1f}" for part, taken in results["minutes"].items())
    return f"""# Results

`make bench`, {results["date"]}, {results["machine"]}. Rounds: {results["rounds"]}; load average before the run:
{results["load"]:.1f}. `Benchmarks/page.py` makes this page from `results.json`.

{summary.text(results["parts"])}
{details.text(results["parts"], results.get("instructions"))}
## Time of the run

{sum(results["minutes"].values()):.0f} minutes: {minutes}.
"""


def quotes(results):
    """Returns the figures that other pages quote: a path, a pattern of a line or phrase, and the text in its place."""
    # The rows of the README's only table of four columns.
    table = r"(?<=^\|---\|---\|---\|---\|\n)(?:\|.*\n)*"
    return [("README.md", table, summary.readme(results["parts"])),
            ("docs/security.md", r"`make bench` measured .*? CPU than with `off`", summary.sandbox(results["parts"]))]


def pages(results):
    """Yields each page's path, and the text that it has to have."""
    yield PAGE, text(results)
    quoted = quotes(results)
    for name in dict.fromkeys(name for name, _, _ in quoted):
        page = (ROOT / name).read_text()
        for _, pattern, new in (quote for quote in quoted if quote[0] == name):
            page, count = re.subn(pattern, lambda _: new, page, flags=re.MULTILINE)
            if count != 1:
                sys.exit(f"{name}: {count} places for a benchmark figure, not one: {pattern}")
        yield ROOT / name, page


def rounded(value):
    """Returns numbers with six digits at most: the others are noise."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def write(results):
    """Keeps the results of a whole run, and writes the charts and all pages with figures of it: all or none."""
    import chart
    results = rounded(results)
    written = list(pages(results))
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    chart.sessions(results["parts"], PAGE.with_name("results.svg"))
    chart.ratios(results["parts"], PAGE.with_name("ratios.svg"))
    for path, page in written:
        path.write_text(page)


def main():
    results = json.loads(RESULTS.read_text())
    if sys.argv[1:] == ["--check"]:
        wrong = [path for path, page in pages(results) if path.read_text() != page]
        for path in wrong:
            print(f"{path.relative_to(ROOT)} does not match results.json; run: Benchmarks/page.py", file=sys.stderr)
        return 1 if wrong else 0
    write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
