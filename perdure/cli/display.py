"""Shows a run while it goes on: lines for what happened, and below them, on a terminal, what is being said now."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Sequence
from textwrap import wrap
from types import TracebackType
from typing import TextIO

from rich.console import Group
from rich.live import Live
from rich.text import Text

from perdure.cli.text import console, entry_lines, printable, styled
from perdure.client import LiveText, Progress

MAX_LINE = 400
"""Characters of one entry; `perdure show` has all of it."""
LIVE_LINES = 6
"""Lines of what is being said."""
ROOM = 5
"""Lines of a terminal that are left to the rest."""


class Display:
    """A context manager around following one run.

    `out` gets the lines of entries, stderr unless said otherwise; lines of our own go to stderr where that isn't a
    terminal. Of the labels in `whole` no line is cut, with `None` of none. `live`: whether to show what is being said.
    """

    def __init__(self, out: TextIO | None = None, *, whole: Container[str] | None = (), live: bool = True) -> None:
        stream = out or sys.stderr
        self._console = console(stream)
        self._notes = self._console if self._console.is_terminal else console(sys.stderr)
        lively = live and self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = self._below(stream is sys.stderr) if lively else None
        self._whole = whole
        self._texts: Sequence[LiveText] = ()
        self._said: dict[str, str] = {}
        self._shown: list[Text] = []
        self._why = ""
        self._unserved: Sequence[str] = ()
        self.footer: Callable[[], Sequence[Text]] = tuple
        """What stands below everything on a terminal."""

    def _below(self, all_of_stderr: bool) -> Live:
        return Live(
            console=self._console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=all_of_stderr,
        )

    @property
    def is_lively(self) -> bool:
        """Whether there is a terminal on which lines can be shown that change."""
        return self._live is not None

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.update("", refresh=True)
            self._live.stop()

    def note(self, label: str, text: str) -> None:
        """Print a line of our own."""
        self._notes.print(styled(label, text))

    def show(self, progress: Progress, *, entries: bool = True) -> None:
        """Print what is new. What is no longer being said goes first: it may be in what is printed."""
        self._texts = progress.live
        self.refresh()
        for label, text in (line for entry in progress.entries if entries for line in entry_lines(entry)):
            cut = self._whole is not None and label not in self._whole and len(text) > MAX_LINE
            self._console.print(styled(label, f"{text[:MAX_LINE]} …" if cut else text))
        if not self._live:
            self._print_progress()
        if progress.why and progress.why != self._why:
            self.note("waiting", f"{progress.why} (Ctrl-C ends only this command)")
        self._why = progress.why
        self._print_unserved(progress)

    def _print_unserved(self, progress: Progress) -> None:
        """What nobody serves, once each, as long as it stays so. While the run itself has no worker that is said."""
        for line in progress.unserved if not progress.why else ():
            if line not in self._unserved:
                self.note("waiting", f"{line} (Ctrl-C ends only this command)")
        if not progress.why:
            self._unserved = progress.unserved

    def refresh(self) -> None:
        """Show anew what changes."""
        if self._live:
            lines = [line for text in self._texts if text.text for line in _spoken(text, self._console.width)]
            room = max(1, self._console.height - ROOM)
            spoken = [Text(line, style="dim") for line in lines[-room:]]
            below = [*spoken, *self.footer()]
            if below != self._shown:  # else it would only flicker
                self._live.update(Group(*below), refresh=True)
            self._shown = below

    def _print_progress(self) -> None:
        """Without a terminal: what tools say, each text once. A model's text comes whole, as its entry."""
        for text in self._texts:
            if text.activity.startswith("tool:") and text.text and self._said.get(text.id) != text.text:
                self._said[text.id] = text.text
                self.note("progress", f"{text.activity.removeprefix('tool:')}: {text.text[:MAX_LINE]}")


def _spoken(live: LiveText, width: int) -> list[str]:
    again = f" (attempt {live.attempt})" if live.attempt > 1 else ""
    return wrap(f"{live.activity}{again}: {printable(live.text)}", width)[-LIVE_LINES:]
