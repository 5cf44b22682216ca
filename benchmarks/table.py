"""The results as Markdown."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from benchmarks.imports import Imports
from benchmarks.many_tools import FEW, NAMESPACES, SIZE_TARGET, TIME_TARGET, ManyTools
from benchmarks.mcp import McpSteps
from benchmarks.measure import COMPLETED, Run
from benchmarks.memory import Memory
from benchmarks.waiting import Delays, Spread, Waiting

COMPARED = 200
"""Steps at which the peers are compared."""
NOTHING_OPEN = "No run that waited had an open activity or a timer. Each tool ran once."
"""True of every report: `measure_waiting` raises otherwise."""
NAMES = {"perdure": "perdure", "capability": "Pydantic AI's Temporal capability", "bare": "bare workflow"}


@dataclass(frozen=True)
class Ratio:
    """A number with a target, lower is better."""

    what: str
    value: float
    target: float
    unit: str = ""


@dataclass(frozen=True)
class Report:
    """Everything one call of `benchmarks.run` found."""

    runs: Sequence[Run]
    imports: Imports | None = None
    memory: Memory | None = None
    waiting: Sequence[Waiting] = ()
    tools: ManyTools | None = None
    mcp: McpSteps | None = None

    def ratios(self) -> list[Ratio]:
        """Those that the peers measured allow for."""
        at = {run.peer: run for run in self.runs if run.steps == COMPARED and run.outcome == COMPLETED}
        found: list[Ratio] = []
        ours, capability, bare = (at.get(name) for name in ("perdure", "capability", "bare"))
        if ours:
            found.append(Ratio("history", ours.history_bytes / 1e6, 1.2, " MB"))
        if ours and capability:
            found.append(_time("time per step, perdure / capability", ours, capability, 0.8))
        if ours and bare:
            found.append(_time("time per step, perdure / bare workflow", ours, bare, 1.6))
        if ours and capability and ours.replay_seconds and capability.replay_seconds:
            replay = ours.replay_seconds / capability.replay_seconds
            found.append(Ratio("replay, perdure / capability", replay, 1 / 3))
        if self.imports:
            start = self.imports.help_seconds / self.imports.pydantic_ai_seconds
            found.append(Ratio("`perdure --help` / `import pydantic_ai`", start, 0.5))
        return found


def _time(what: str, ours: Run, theirs: Run, target: float) -> Ratio:
    return Ratio(what, ours.seconds_per_step / theirs.seconds_per_step, target)


def markdown(report: Report) -> str:
    """The whole report."""
    parts = [
        _machine(),
        _runs(report.runs),
        _ratios(report.ratios()),
        *_notes(report),
        _waiting(report.waiting),
        _tools(report.tools),
        _mcp(report.mcp),
    ]
    return "\n\n".join(part for part in parts if part)


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("temporalio", "pydantic-ai-slim"))
    return f"Python {platform.python_version()}, {packages}, {os.cpu_count()} cores for client, worker and server."


def _runs(runs: Sequence[Run]) -> str:
    lines = ["| steps | | history | events | time per step | replay |", "|--:|---|--:|--:|--:|--:|"]
    last = 0
    for run in runs:
        cells = [
            str(run.steps) if run.steps != last else "",
            NAMES[run.peer],
            f"{run.history_bytes / 1e6:.2f} MB",
            f"{run.events:,}" + (f" in {run.runs} runs" if run.runs > 1 else ""),
            _time_cell(run),
            f"{run.replay_seconds:.2f} s" if run.replay_seconds else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
        last = run.steps
    return "\n".join(lines)


def _time_cell(run: Run) -> str:
    if run.outcome != COMPLETED:
        return f"{run.outcome} in step {run.taken}"
    return f"{run.seconds_per_step * 1000:.1f} ms"


def _ratios(ratios: Sequence[Ratio]) -> str:
    if not ratios:
        return ""
    lines = [f"| at {COMPARED} steps | measured | target | met |", "|---|--:|--:|---|"]
    for ratio in ratios:
        met = "yes" if ratio.value <= ratio.target else "**no**"
        lines.append(f"| {ratio.what} | {ratio.value:.2f}{ratio.unit} | ≤ {ratio.target:.2g}{ratio.unit} | {met} |")
    return "\n".join(lines)


def _notes(report: Report) -> list[str]:
    notes: list[str] = []
    if found := report.imports:
        for what, light in (("import perdure", found.package_is_light), ("perdure --help", found.help_is_light)):
            notes.append(f"`{what}` {'leaves pydantic_ai out' if light else '**imports pydantic_ai**'}.")
        notes.append(
            f"`perdure --help`: {found.help_seconds:.2f} s; `import pydantic_ai`: {found.pydantic_ai_seconds:.2f} s."
        )
    if found := report.memory:
        grown = (found.after - found.before) / found.open_runs * 100
        notes.append(f"A worker holds {found.before / 1e6:.0f} MB, and {grown / 1e6:.1f} MB more per 100 open runs.")
    return notes


def _waiting(measured: Sequence[Waiting]) -> str:
    if not measured:
        return ""
    lines = [
        "| runs wait | worker keeps | its memory | per run | decided | decision → tool, p50, p95 "
        "| plain call → tool | ratio |",
        "|--:|--:|--:|--:|---|--:|--:|--:|",
    ]
    for found in measured:
        grown = (found.after - found.before) / found.runs
        cells = [f"{found.runs:,}", f"{found.cache:,}", f"{found.before / 1e6:.0f} → {found.after / 1e6:.0f} MB"]
        cells.append(f"{grown / 1e3:.0f} kB")
        for delays in found.delays:
            lines.append(f"| {' | '.join([*cells, *_delay_cells(delays, found.decisions)])} |")
            cells = [""] * len(cells)
    return "\n".join(lines) + f"\n\n{NOTHING_OPEN}"


def _tools(found: ManyTools | None) -> str:
    if found is None:
        return ""
    rows = [
        (f"{FEW}", f"{FEW}", found.few_bytes, found.few_seconds),
        (f"{found.tools} in {NAMESPACES} namespaces", f"{FEW} found", found.many_bytes, found.many_seconds),
        (f"{found.tools}", f"{found.tools}", found.whole_bytes, found.whole_seconds),
    ]
    lines = ["| tools | shown | model request | | time per step | |", "|--:|--:|--:|--:|--:|--:|"]
    for tools, shown, size, seconds in rows:
        ratios = size / found.few_bytes, seconds / found.few_seconds
        cells = [
            tools,
            shown,
            f"{size / 1e3:.1f} kB",
            f"{ratios[0]:.2f}",
            f"{seconds * 1e3:.1f} ms",
            f"{ratios[1]:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    met = [_met(found.size_ratio, SIZE_TARGET), _met(found.time_ratio, TIME_TARGET)]
    return "\n".join(lines) + f"\n\nTargets of the second row: request {met[0]}, time {met[1]}."


def _mcp(found: McpSteps | None) -> str:
    if found is None:
        return ""
    function, held, started = (f"{one * 1e3:.1f} ms" for one in (found.function, found.held, found.started))
    return (
        f"A step with a tool of a held MCP server over stdio: {held}, {found.ratio:.2f} times one with a function "
        f"({function}). A server that is started for the call alone: {started} more."
    )


def _met(value: float, target: float) -> str:
    return f"≤ {target:.2g}, {'met' if value <= target else '**missed**'}"


def _delay_cells(delays: Delays, decisions: int) -> list[str]:
    """The ratio only where one call is under way: several at once wait for each other, decisions more than calls."""
    times = [_spread(delays.decided), _spread(delays.plain)]
    if delays.at_once > 1:
        return [f"{decisions}, {delays.at_once} at once", *times, ""]
    return [f"{decisions}, one by one", *times, f"{delays.decided.p50 / delays.plain.p50:.1f}"]


def _spread(spread: Spread) -> str:
    return f"{spread.p50 * 1000:.0f}, {spread.p95 * 1000:.0f} ms"
