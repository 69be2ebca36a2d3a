"""Expected texts: tests/golden/NAME.txt, and NAME.torch-X.Y.txt or NAME.transformers-X.Y.txt where that version differs."""
import difflib

from harness.program import GOLDEN

BASE = {"torch": "2.11", "transformers": "5.17"}  # the versions that NAME.txt without one is of


def expected(name, series):
    for path in (*(GOLDEN / f"{name}.{package}-{version}.txt" for package, version in series.items()), GOLDEN / f"{name}.txt"):
        if path.exists():
            return path
    return None


def unapproved(name, series):
    other = [f".{package}-{version}" for package, version in series.items() if version and version != BASE[package]]
    return GOLDEN / f"{name}{''.join(other[:1])}.unapproved.txt"


def compare(name, series, text):
    """None where the text is as expected. Otherwise the difference; the new text then lies beside, to be approved or not."""
    path = expected(name, series)
    fresh = unapproved(name, series)
    wanted = path.read_text() if path else ""
    if text == wanted:
        fresh.unlink(missing_ok=True)
        return None
    fresh.write_text(text)
    return "".join(difflib.unified_diff(wanted.splitlines(True), text.splitlines(True),
                                        f"golden/{path.name}" if path else "(no expected file yet)", f"golden/{fresh.name}"))
