"""Expected texts: tests/golden/NAME.txt, and NAME.torch-X.Y.txt where that version of PyTorch differs."""
import difflib

from harness.program import GOLDEN

BASE = "2.11"  # the version that NAME.txt without a version is of


def expected(name, series):
    for path in (GOLDEN / f"{name}.torch-{series}.txt", GOLDEN / f"{name}.txt"):
        if path.exists():
            return path
    return None


def unapproved(name, series):
    return GOLDEN / (f"{name}.unapproved.txt" if series == BASE else f"{name}.torch-{series}.unapproved.txt")


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
