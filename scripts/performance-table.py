#!/usr/bin/env python3
"""Writes docs/performance.md, the pages in docs/performance/ and the table of README.md from the JSON in docs/performance/.

    scripts/performance-table.py [--check] [FOLDER]    (--check compares instead; another folder of reports)

FOLDER/pages.json says which page holds which report (each exactly one), and which results stand on the first page and in the README.
"""
import json
import pathlib
import re
import sys
import textwrap

from performance_headlines import section, summary
from performance_tables import table

SUMMARY = re.compile(r"(<!-- table: scripts/performance-table.py -->\n).*?(<!-- end of table -->)", re.S)


def wrapped(text):
    """Prose in lines of 120 columns; headings and tables as they are."""
    def fill(line):
        indent = "  " if line.startswith("- ") else ""
        return textwrap.fill(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(line if line.startswith(("|", "#")) else fill(line) for line in text.split("\n"))


def first_page(pages, reports):
    yield f"# {pages['title']}\n\n{pages['text']}\n\n"
    for name, page in pages["pages"].items():
        yield f"- [{page['title']}]({pages['folder']}/{name}): {page['text']}\n"
    for chosen in pages["headlines"]:
        yield from section(pages["folder"], chosen, reports)


def long_page(page, reports):
    yield f"# {page['title']}\n\n{page['text'][0].upper()}{page['text'][1:]}.\nMade by `scripts/performance-table.py` from "
    yield ", ".join(f"[{name}]({name})" for name in page["reports"]) + ".\n"
    for name in page["reports"]:
        yield "\n" + table(reports[name])


def texts(folder):
    """Path and text of each page."""
    pages = json.loads((folder / "pages.json").read_text())
    reports = {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json")) if path.name != "pages.json"}
    named = [name for page in pages["pages"].values() for name in page["reports"]]
    for name in {*named, *reports}:
        if name not in reports or named.count(name) != 1:
            sys.exit(f"{folder}/pages.json names {name} {named.count(name)} times, and the file is {'' if name in reports else 'not '}there; name each report once")
    yield folder / pages["first_page"], wrapped("".join(first_page(pages, reports)))
    for name, page in pages["pages"].items():
        yield folder / name, wrapped("".join(long_page(page, reports)))
    readme = folder / pages["summary"]["page"]
    old = readme.read_text()
    if not SUMMARY.search(old):
        sys.exit(f"{readme} has no marks for the table; write <!-- table: scripts/performance-table.py --> and <!-- end of table -->")
    yield readme, SUMMARY.sub(lambda marks: marks[1] + "\n" + "".join(summary(pages["summary"]["rows"], reports)) + "\n" + marks[2], old)


words = [word for word in sys.argv[1:] if word != "--check"]
if len(words) > 1 or any(word.startswith("-") for word in words):
    sys.exit(__doc__)
reports_folder = pathlib.Path(words[0]) if words else pathlib.Path(__file__).resolve().parent.parent / "docs" / "performance"
for target, text in texts(reports_folder):
    if "--check" not in sys.argv:
        target.write_text(text)
    elif not target.exists() or target.read_text() != text:
        sys.exit(f"{target.resolve()} does not match {reports_folder}/*.json: run scripts/performance-table.py")
