"""Shows a run while it goes on, on stderr: lines for what happened, and on a terminal what is being said right now."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import wrap
from types import TracebackType

from rich.console import Group
from rich.live import Live
from rich.text import Text

from perdure.cli.text import console, entry_lines, printable, styled
from perdure.client import LiveText, Progress

MAX_LINE = 400
"""Characters of one entry; `perdure show` has all of it."""
LIVE_LINES = 6
"""Lines of what is being said."""


class Display:
    """A context manager around following one run."""

    def __init__(self) -> None:
        self._console = console(sys.stderr)
        self._live = Live(console=self._console, transient=True) if self._console.is_terminal else None
        self._said: dict[str, str] = {}
        self._why = ""

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def note(self, label: str, text: str) -> None:
        """Print a line of our own."""
        self._console.print(styled(label, text))

    def show(self, progress: Progress) -> None:
        """Print what is new."""
        for entry in progress.entries:
            for label, text in entry_lines(entry):
                self.note(label, text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]} …")
        if self._live:
            self._live.update(Group(*(_spoken(text, self._console.width) for text in progress.live if text.text)))
        else:
            self._print_progress(progress.live)
        if progress.why and progress.why != self._why:
            self.note("waiting", f"{progress.why} (Ctrl-C ends only this command)")
        self._why = progress.why

    def _print_progress(self, texts: Sequence[LiveText]) -> None:
        """Without a terminal: what tools say, each text once. A model's text comes whole, as its entry."""
        for text in texts:
            if text.activity.startswith("tool:") and text.text and self._said.get(text.activity) != text.text:
                self._said[text.activity] = text.text
                self.note("progress", f"{text.activity.removeprefix('tool:')}: {text.text[:MAX_LINE]}")


def _spoken(live: LiveText, width: int) -> Text:
    again = f" (attempt {live.attempt})" if live.attempt > 1 else ""
    lines = wrap(f"{live.activity}{again}: {printable(live.text)}", width)
    return Text("\n".join(lines[-LIVE_LINES:]), style="dim")
