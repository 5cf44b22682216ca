"""Two faces of a tool, from its one definition: the JSON that models are sent, and the Python that people read.

The Python is Pydantic AI's own (`ToolDefinition.function_signature`); the docstring has the schema of the result where
a type hint doesn't say it all. Both are information: arguments and results are checked by what they were made from.
"""

from __future__ import annotations

import ast
import json
import keyword
from collections.abc import Iterable

from pydantic_ai.function_signature import FunctionSignature
from pydantic_ai.tools import ToolDefinition

from perdure.contracts import Json

HEAD = """from __future__ import annotations

from typing import Any, Literal

from typing_extensions import NotRequired, TypedDict"""


def as_json(tools: Iterable[ToolDefinition]) -> list[Json]:
    """Each tool as its name, description, and the JSON Schemas of its arguments and its result, where that is known."""
    return [
        {
            "name": tool.name,
            "description": tool.description or "",
            "parameters": tool.parameters_json_schema,
            **({"returns": tool.return_schema} if tool.return_schema else {}),
        }
        for tool in tools
    ]


def as_python(tools: Iterable[ToolDefinition]) -> str:
    """The tools as a Python module: the types they need, then a function each, with a docstring and without a body.

    A name that Python can't write is changed as little as possible; `as_json` has it as it is.
    """
    shown = list(tools)
    signatures = [tool.function_signature for tool in shown]
    clashing = FunctionSignature.get_conflicting_type_names(signatures)
    types = FunctionSignature.render_type_definitions(signatures, clashing)
    functions = [
        _readable(
            signature.render(
                "...", name=identifier(tool.name), description=docstring(tool), conflicting_type_names=clashing
            )
        )
        for tool, signature in zip(shown, signatures, strict=True)
    ]
    return "\n\n\n".join([HEAD, *types, *functions]) + "\n"


def docstring(tool: ToolDefinition) -> str:
    """The description, and the schema of a result that is more than a plain value, in Pydantic AI's own words."""
    schema = tool.return_schema or {}
    if not set(schema) - {"type", "title"}:
        return tool.description or ""
    return "\n\n".join([tool.description or "", "Return schema:", json.dumps(schema, indent=2)]).strip()


def _readable(function: str) -> str:
    """The function without the backslashes before quotes, where its docstring stays the same without them."""
    plain = function.replace('\\"', '"')
    try:
        same = ast.dump(ast.parse(plain)) == ast.dump(ast.parse(function))
    except SyntaxError:
        same = False
    return plain if same else function


def identifier(name: str) -> str:
    """A tool's name as Python can write it."""
    written = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in name)
    return f"_{written}" if written[:1].isdigit() else f"{written}_" if keyword.iskeyword(written) else written
