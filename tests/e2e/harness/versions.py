"""Which packages the traced Python has, and whether a program's `requires` is met by them."""
import functools
import json
import operator
import re
import subprocess

_OPERATORS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "<": operator.lt, ">": operator.gt}


@functools.lru_cache
def installed(python):
    code = ("import importlib.metadata as m, json; "
            "print(json.dumps({d.metadata['Name'].lower(): d.version for d in reversed(list(m.distributions())) if d.metadata['Name']}))")
    return json.loads(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout)


def numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0]))


def series(python, package):
    """X.Y, or "" where the package is not installed."""
    return ".".join(installed(python).get(package, "").split(".")[:2])


def unmet(requires, python):
    """The first requirement that is not met, as text, or None."""
    for requirement in requires:
        name, relation, wanted = re.fullmatch(r"([\w-]+)(?:([<>=]=?)([\d.]+))?", requirement).groups()
        found = installed(python).get(name.lower())
        if found is None:
            return f"{name} is not installed"
        if relation:
            length = len(numbers(wanted))
            if not _OPERATORS[relation](numbers(found)[:length], numbers(wanted)):
                return f"{requirement}, found {found}"
    return None
