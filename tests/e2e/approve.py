#!/usr/bin/env python3
"""Accepts the reports that run.py left as NAME.unapproved.txt: approve.py NAME...  or  approve.py --all. Read them first."""
import pathlib
import sys

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
SUFFIX = ".unapproved.txt"


def main(names):
    if not names:
        sys.exit(__doc__)
    for path in sorted(GOLDEN.glob(f"*{SUFFIX}")):
        stem = path.name[: -len(SUFFIX)]
        if names == ["--all"] or stem in names or stem.split(".")[0] in names:
            path.replace(GOLDEN / f"{stem}.txt")
            print(f"approved {stem}.txt")


if __name__ == "__main__":
    main(sys.argv[1:])
