"""A program to trace, and what its first comment lines say about running it."""
import dataclasses
import pathlib
import re
import shlex

TESTS = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = TESTS / "programs"
GOLDEN = TESTS / "golden"


@dataclasses.dataclass
class Program:
    """Directives are header lines `# key: value`; the fields below are all the keys there are."""
    path: pathlib.Path
    options: list = dataclasses.field(default_factory=list)   # of attntrace
    args: list = dataclasses.field(default_factory=list)      # of the program
    env: dict = dataclasses.field(default_factory=dict)       # K=V K=V
    requires: list = dataclasses.field(default_factory=list)  # torch>=2.10 transformers
    environments: list = dataclasses.field(default_factory=lambda: ["base"])  # `with`: names of tests/requirements
    through: list = dataclasses.field(default_factory=list)   # a command that is given the command line as one more argument
    exit: int = 0  # None, `as expected`: it differs between environments, the expected text says it
    signal: int = 0
    timeout: int = 180

    @property
    def name(self):
        return self.path.stem

    def command(self, python):
        command = [python, str(self.path), *self.args]
        return [*self.through, shlex.join(command)] if self.through else command


def load(name):
    program = Program(PROGRAMS / f"{name}.py")
    for line in program.path.read_text().splitlines():
        if not line.startswith("#"):
            break
        directive = re.match(r"# ([a-z]+): (.*)", line)
        if not directive:
            continue
        key, value = directive.groups()
        if (key, value) == ("exit", "as expected"):
            program.exit = None
        elif key in ("exit", "signal", "timeout"):
            setattr(program, key, int(value))
        elif key == "with":
            program.environments = value.split()
        elif key in ("options", "args", "requires", "through"):
            setattr(program, key, shlex.split(value))
        elif key == "env":
            program.env = dict(pair.split("=", 1) for pair in shlex.split(value))
        else:
            raise SystemExit(f"{program.path.name}: there is no directive {key!r}")
    return program


def names():
    """Of all runs: NAME, and NAME@ENVIRONMENT where a program says `# with:`."""
    return sorted(path.stem if environment == "base" else f"{path.stem}@{environment}"
                  for path in PROGRAMS.glob("*.py") for environment in load(path.stem).environments)
