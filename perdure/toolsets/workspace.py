"""`workspace`: tools for the files under a root folder, and for shell commands that start there.

The file tools can't leave the folder (`folder`). A command can: it runs as the worker's user and reaches whatever that
user may. So it asks a person by default, and belongs into a container. See docs/workspace.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_ai import FunctionToolset, ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.workspaces import LocalWorkspaceBackend, WorkspaceOutputLimitError, WorkspaceTimeoutError

from perdure.contracts import payload_size
from perdure.errors import DeclarationError
from perdure.numbers import positive, whole
from perdure.toolsets.folder import ROOT, Folder
from perdure.toolsets.paths import FolderError
from perdure.typed import check_arguments, check_value

Root = str | Path | Callable[[RunContext[Any]], str | Path]
"""A folder, or a function that gives the folder of a run."""
T = TypeVar("T")
MAX_COMMAND = 100_000
"""Bytes; Linux takes no argument of a program over 128 KiB."""
FROM_ROOT = 'cd -P -- "$1" && exec /bin/sh -c "$2"'
"""Runs a command in the root. Pydantic AI's backend, given the root, loses the output of a command that removes it."""
MAX_ARGUMENTS = 700_000
"""Bytes, as JSON, of the arguments that write a file."""
MAX_LINES = 2_000
MAX_NAMES = 1_000
LINE = re.compile(r"[^\n]*\n|[^\n]+")
"""As other programs count them, `grep -n` say: Python's `splitlines` ends a line at a form feed too."""


class CommandResult(BaseModel):
    """What a command that has ended left."""

    exit_code: int
    stdout: str
    stderr: str


def workspace(
    root: Root,
    *,
    id: str = "workspace",
    shell: bool = True,
    gated: bool = True,
    git: bool = False,
    timeout: float = 120.0,
    max_output: int = 50_000,
    env: Mapping[str, str] | None = None,
) -> FunctionToolset[Any]:
    """Tools for files and, unless `shell=False`, commands. Raises `DeclarationError` for a bad option; POSIX.

    Args:
        root: an absolute path, on the disk of each worker that runs the tools. Or a function of the run context.
        id: of the toolset; wire format.
        gated: whether a person has to let each `write_file` and `run_command` run.
        git: whether `write_file` may change what is in a `.git`, whose config and hooks name programs that git runs.
        timeout: seconds a command may take; then it is killed with its process group.
        max_output: characters of a file, a list, each output of a command.
        env: further variables of commands. Of the worker's own they get `PATH` and the locale; `HOME` is the root.
    """
    check_arguments(workspace, locals(), f"workspace(id={id!r})", own=("root", "timeout", "max_output"))
    _check(timeout, max_output)
    tools: FunctionToolset[Any] = FunctionToolset(id=id, metadata=rooted(root))
    _add_readers(tools, root, max_output)
    _add_writer(tools, root, gated, git)
    if shell:
        _add_shell(tools, root, gated, timeout, max_output, dict(env or {}))
    return tools


def _check(timeout: float, max_output: int) -> None:
    if not positive(timeout) or not whole(max_output, 100):
        raise DeclarationError(
            f"timeout={timeout!r} must be finite, more than 0, and max_output={max_output!r} whole, at least 100"
        )


def rooted(root: Root) -> dict[str, Any]:
    """The metadata of tools that work there, by which a worker looks for the folder when it starts. Raises
    `DeclarationError` for what can't be a root: whether it is there only that worker knows, but not if it is a file."""
    if callable(root):
        check_value(root, Callable[[RunContext[Any]], Any], "root")
        return {}
    path = Folder(root).root
    if path.exists() and not path.is_dir():
        raise DeclarationError(f"root={root!r} is no folder")
    return {ROOT: str(path)}


def _add_readers(tools: FunctionToolset[Any], root: Root, most: int) -> None:
    @tools.tool
    def list_files(ctx: RunContext[Any], path: str = ".") -> str:  # pyright: ignore[reportUnusedFunction]
        """List a folder. Names of folders end with "/", of links, which can't be followed, with "@".

        Args:
            path: The folder, relative to the root folder.
        """
        return _rows(within(lambda: folder(root, ctx).names(path)), most)

    @tools.tool
    def read_file(  # pyright: ignore[reportUnusedFunction]
        ctx: RunContext[Any], path: str, start: int = 1, lines: int = 500
    ) -> str:
        """Read lines of a text file.

        Args:
            path: The file, relative to the root folder.
            start: The first line to read, counted from 1.
            lines: How many lines to read, at most 2,000.
        """
        every = LINE.findall(text_of(within(lambda: folder(root, ctx).read(path)), path))
        first = max(1, start) - 1
        page = every[first : first + min(max(1, lines), MAX_LINES)]
        if first and not page:
            return f"[there is no line {first + 1}: the file has {len(every)}]"
        end = first + len(page)
        about = f"[lines {first + 1} to {end} of {len(every)}]\n" if first or end < len(every) else ""
        return about + bounded("".join(page), most)


def _rows(names: list[str], most: int) -> str:
    """The names, one a line, as many as fit. A name that would look like several is shown as Python writes it."""
    rows = [name if name.isprintable() else repr(name) for name in names[:MAX_NAMES]]
    fitting = sum(end <= most for end in accumulate(len(row) + 1 for row in rows))
    more = [f"[{len(names) - fitting} more are left out]"] if fitting < len(names) else []
    return "\n".join([*rows[:fitting], *more]) or "[the folder is empty]"


def check_size(_ctx: RunContext[Any], /, **args: Any) -> None:
    """Ask the model for less, before arguments that can't be carried end the run: they are stored twice, as the model
    gave them and as they are planned."""
    if (size := payload_size(args)) > MAX_ARGUMENTS:
        raise ModelRetry(
            f"The arguments have {size} bytes; they may have {MAX_ARGUMENTS}. Make the file in smaller parts."
        )


BOUNDED: Callable[..., None] = check_size
"""As the `args_validator` of tools with any arguments."""


def _add_writer(tools: FunctionToolset[Any], root: Root, gated: bool, git: bool) -> None:
    @tools.tool(sequential=True, requires_approval=gated, args_validator=BOUNDED)
    def write_file(ctx: RunContext[Any], path: str, text: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write a text file, in place of what it held. Folders that are missing are made.

        Args:
            path: The file, relative to the root folder.
            text: All that the file will hold.
        """
        return f"{path}: {within(lambda: folder(root, ctx, git).write(path, encoded(text)))}"


def _add_shell(
    tools: FunctionToolset[Any], root: Root, gated: bool, timeout: float, most: int, env: Mapping[str, str]
) -> None:
    @tools.tool(sequential=True, requires_approval=gated)
    async def run_command(  # pyright: ignore[reportUnusedFunction]
        ctx: RunContext[Any], command: str
    ) -> CommandResult:
        """Run a shell command in the root folder. It gets no input, and is killed when its time is over.

        Args:
            command: The command, for `/bin/sh -c`.
        """
        if "\0" in command or len(encoded(command)) > MAX_COMMAND:
            raise ToolFailed(
                f"A command may have {MAX_COMMAND} bytes and no null character. Write a script and run it."
            )
        here = folder(root, ctx).root
        if not here.is_dir():  # an earlier command may have removed it
            raise ToolFailed("The root folder isn't there: the command was not run.")
        local = LocalWorkspaceBackend(Path("/"), env={"HOME": str(here), **env})
        try:
            done = await local.run(["/bin/sh", "-c", FROM_ROOT, "sh", str(here), command], timeout=timeout)
        except WorkspaceTimeoutError as error:
            raise _ended(f"The command didn't end within {timeout:g} s and was killed.", error, most) from None
        except WorkspaceOutputLimitError as error:
            raise _ended("The command put out more than 10 MB and was killed.", error, most) from None
        return CommandResult(
            exit_code=done.exit_code, stdout=bounded(done.stdout, most), stderr=bounded(done.stderr, most)
        )


def _ended(why: str, error: WorkspaceTimeoutError | WorkspaceOutputLimitError, most: int) -> ToolFailed:
    return ToolFailed(f"{why}\nstdout: {bounded(error.stdout, most)}\nstderr: {bounded(error.stderr, most)}")


def folder(root: Root, ctx: RunContext[Any], git: bool = False) -> Folder:
    """The folder of this run. Raises `ToolFailed` for a root of this run that isn't the absolute path of a folder."""
    try:
        return Folder(root(ctx) if callable(root) else root, git=git)
    except DeclarationError as error:
        raise ToolFailed(f"The folder of this run can't be used: {error}.") from None


def within(act: Callable[[], T]) -> T:
    """What `act` returns. What is wrong with a path is told to the model."""
    try:
        return act()
    except FolderError as error:
        raise ToolFailed(f"{error}.") from None


def text_of(data: bytes, path: str) -> str:
    """A file as text. Raises `ToolFailed` for one that isn't."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ToolFailed(f"{path!r} isn't text in UTF-8.") from None


def encoded(text: str) -> bytes:
    """Text as a file has it. Raises `ToolFailed` for half a character."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolFailed("The text isn't valid Unicode.") from None


def bounded(text: str, most: int) -> str:
    """The beginning and the end of a text that has more than `most` characters."""
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}\n[… {len(text) - most} characters are left out here …]\n{text[len(text) - (most - head) :]}"
