"""`apply_patch`: changes of a file as a V4A diff, which names no line numbers, as OpenAI's models are trained to make.

The diffs are read by OpenAI's own library (extra `openai-agents`). Files are reached by `folder`, as in `workspace`.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.exceptions import ToolFailed

from perdure.context import call_or_none
from perdure.toolsets.folder import Folder
from perdure.toolsets.v4a import changed, created
from perdure.toolsets.workspace import BOUNDED, Root, encoded, folder, rooted, text_of, within
from perdure.typed import check_arguments

Operation = Literal["create_file", "update_file", "delete_file"]
SIGNS = {"+": "-", "-": "+"}


def patching(root: Root, *, id: str = "apply_patch", gated: bool = True, git: bool = False) -> FunctionToolset[Any]:
    """A toolset of `apply_patch`. `root`, `gated` and `git` mean what they mean to `workspace`."""
    check_arguments(patching, locals(), f"patching(id={id!r})", own=("root",))
    tools: FunctionToolset[Any] = FunctionToolset(id=id, metadata=rooted(root))

    @tools.tool(sequential=True, requires_approval=gated, args_validator=BOUNDED)
    def apply_patch(  # pyright: ignore[reportUnusedFunction]
        ctx: RunContext[Any], type: Operation, path: str, diff: str = ""
    ) -> str:
        """Create, update or delete one text file.

        Args:
            type: What to do.
            path: The file, relative to the root folder.
            diff: A V4A diff without the lines "*** Begin Patch" and "*** Update File". To update: sections that begin
                with "@@", optionally followed by a whole line of the file before the change, with a few unchanged lines
                after " ", removed ones after "-" and added ones after "+". To create: every line after "+".
        """
        return within(lambda: _apply(folder(root, ctx, git), type, path, diff))

    return tools


def _apply(files: Folder, type: Operation, path: str, diff: str) -> str:
    match type:
        case "create_file":
            return _create(files, path, diff)
        case "update_file":
            return _update(files, path, diff)
        case "delete_file":
            return f"{path}: {'deleted' if files.delete(path) else 'was not there'}"


def _create(files: Folder, path: str, diff: str) -> str:
    data = encoded(_applied("", diff, create=True))
    written = files.write(path, data, new=True)
    return f"{path}: {written}"


def _update(files: Folder, path: str, diff: str) -> str:
    """Made once for one call, however often its activity runs: the new content carries the call's idempotency key."""
    held = files.read(path)
    key, attempt = _call()
    marks = files.marks(path)
    if key in (marks or []):
        return f"{path}: had been changed so already"
    if marks is None and attempt > 1:
        raise ToolFailed(f"Whether an earlier attempt has changed {path!r} can't be told: read it.")
    before = text_of(held, path)
    try:
        after = _applied(before, diff)
    except ToolFailed:
        if _has(before, diff):
            return f"{path}: had been changed so already"
        raise
    return f"{path}: {files.write(path, encoded(after), expected=held, mark=key)}"


def _applied(text: str, diff: str, *, create: bool = False) -> str:
    try:
        return created(diff) if create else changed(text, diff)
    except ValueError as error:
        raise ToolFailed(f"The diff doesn't fit: {str(error)[:500]}") from None


def _has(text: str, diff: str) -> bool:
    """Whether the diff, applied to some text, makes this one: it can be taken back, and then applied again."""
    try:
        return changed(changed(text, _inverse(diff)), diff) == text
    except ValueError:
        return False


def _inverse(diff: str) -> str:
    return re.sub(r"^[+-]", lambda sign: SIGNS[sign.group()], diff, flags=re.M)


def _call() -> tuple[str, int]:
    """The key and the attempt of the call; none in a plain `agent.run`."""
    call = call_or_none()
    return ("", 1) if call is None else (call.idempotency_key, call.attempt)
