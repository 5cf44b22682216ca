"""What the light parts of perdure import, and how long `perdure --help` takes."""

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

IMPORT = "import perdure"
HELP = "import sys; from perdure.cli import main; sys.argv = ['perdure', '--help']; main()"
HEAVY = "import pydantic_ai"


@dataclass(frozen=True)
class Imports:
    """Import costs, each from fresh processes."""

    package_is_light: bool
    """`import perdure` doesn't import pydantic_ai."""
    help_is_light: bool
    """`perdure --help` doesn't import pydantic_ai."""
    help_seconds: float
    pydantic_ai_seconds: float
    """`import pydantic_ai`, interpreter start included as in `help_seconds`."""


def measure_imports(times: int = 5) -> Imports:
    """Check both promises and take medians of `times` runs."""
    medians = _medians({"help": HELP, "heavy": HEAVY}, times)
    return Imports(
        package_is_light="pydantic_ai" not in _imported(IMPORT),
        help_is_light="pydantic_ai" not in _imported(HELP),
        help_seconds=medians["help"],
        pydantic_ai_seconds=medians["heavy"],
    )


def _imported(code: str) -> set[str]:
    """Every module imported by `code`, by `-X importtime`: that sees also what ends in `SystemExit`."""
    lines = _python("-X", "importtime", "-c", code).stderr.splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def _medians(codes: Mapping[str, str], times: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(times):  # in turn, so that a slow minute of the machine hits all
        for name, code in codes.items():
            started = time.perf_counter()
            _python("-c", code)
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} failed: {done.stderr[-500:]}")
    return done
