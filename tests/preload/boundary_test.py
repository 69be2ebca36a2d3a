"""Holds what the injected libraries need and show to the lists in tests/golden/boundary.

usage: boundary_test.py LIBRARY LIST   (LIST.needed: may need these; LIST.exports: shows exactly these)
"""

import os
import re
import subprocess
import sys


def read_list(path):
    with open(path) as file:
        return set(file.read().split())


def needed(library):
    text = subprocess.check_output([os.environ["READELF"], "-dW", library], text=True)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def exports(library):
    text = subprocess.check_output([os.environ["NM"], "-D", "--defined-only", library], text=True)
    return {line.split()[-1] for line in text.splitlines()}


def search_paths(library):
    text = subprocess.check_output([os.environ["READELF"], "-dW", library], text=True)
    return re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text)


def main():
    library, allowed = sys.argv[1:]
    faults = []
    if extra := needed(library) - read_list(allowed + ".needed"):
        faults.append(f"needs {sorted(extra)}")
    shown, wanted = exports(library), read_list(allowed + ".exports")
    if shown != wanted:
        faults.append(f"shows {sorted(shown - wanted)}, lacks {sorted(wanted - shown)}")
    if paths := search_paths(library):
        faults.append(f"carries a library search path of the machine that built it: {paths}")
    for fault in faults:
        print(f"{library} {fault}")
    sys.exit(1 if faults else 0)


main()
