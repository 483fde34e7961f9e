#!/usr/bin/env python3
"""Every link of every document leads somewhere, to headings too, and every file that documents and comments name is there.

    check_links.py SOURCE
    check_links.py --installed FOLDER    the links alone: of documents that are installed without the sources
"""
import pathlib
import re
import sys

SOURCES = {".h", ".cpp", ".kernel", ".py", ".sh", ".cmake", ".txt"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# In documents `src/....h` and the like; in sources the documents alone.
NAMED = re.compile(r"`((?:bench|cli|data|docs|examples|include|scripts|src|tests)/[\w./-]+\.\w+)`")
NAMED_IN_SOURCES = re.compile(r"\bdocs/[\w./-]+\.(?:md|json)\b")


def files(root):
    for path in sorted(root.iterdir()):
        if path.is_dir() and path.name not in (".git", "build", "out") and not path.is_symlink():
            yield from files(path)
        elif path.is_file():
            yield path


def anchors(text):
    """As GitHub makes them of headings."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.M):
        yield re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).replace(" ", "-")


def dead_links(path, text):
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        if not file.exists():
            yield f"links to {target}, which is not there"
        elif anchor and anchor not in anchors(file.read_text()):
            yield f"links to {target}, and {file.name} has no such heading"


def missing_files(root, text, pattern):
    for name in pattern.findall(text):
        stands_for_others = any(part.isupper() for part in pathlib.PurePath(name).parent.parts)  # src/OPERATION/cpu.cpp
        if not stands_for_others and not (root / name).exists():
            yield f"names {name}, which is not there"


def faults(root, is_installed):
    for path in files(root):
        # Tests have documents of their own to be wrong about.
        if path.suffix == ".md" and "tests" not in path.relative_to(root).parts:
            text = path.read_text()
            yield from ((path, fault) for fault in dead_links(path, text))
            if not is_installed:
                yield from ((path, fault) for fault in missing_files(root, text, NAMED))
        elif path.suffix in SOURCES and not is_installed:
            yield from ((path, fault) for fault in missing_files(root, path.read_text(errors="replace"), NAMED_IN_SOURCES))


source = pathlib.Path(sys.argv[-1]).resolve()
found = list(faults(source, "--installed" in sys.argv))
for where, what in found:
    print(f"{where.relative_to(source)} {what}")
print(f"{len(found)} dead links" if found else "ok")
sys.exit(1 if found else 0)
