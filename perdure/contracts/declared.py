"""Models that a program makes with its own hands, and that are read from history and from clients too."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from perdure.errors import DeclarationError


class Declared(BaseModel):
    """Made in code, it raises `DeclarationError`, in one sentence, where Pydantic's own error has four lines. Read
    (`model_validate`), it raises what every model does, since those who read know what to make of that."""

    if not TYPE_CHECKING:  # a checker knows the fields

        def __init__(self, **given: Any) -> None:
            name, known = type(self).__name__, type(self).model_fields
            for unknown in sorted(given.keys() - known.keys()):
                near = get_close_matches(unknown, known, 1)
                meant = f": did you mean {near[0]!r}?" if near else "."
                raise DeclarationError(f"{name}(…) has no {unknown!r}{meant} Known: {list(known)}")
            self.check_given(given)
            try:
                super().__init__(**given)
            except ValidationError as error:
                row = error.errors(include_url=False, include_context=False)[0]
                place = ".".join(map(str, row["loc"]))
                raise DeclarationError(f"{name}({place}={row['input']!r}): {_in_words(row['msg'])}") from None

        __init__.__pydantic_base_init__ = True  # or `model_validate` would come here

    @classmethod
    def check_given(cls, given: dict[str, Any]) -> None:
        """Raise `DeclarationError` for what a reader takes, and a program may not give."""


def _in_words(message: str) -> str:
    """Pydantic's message, as the rest of a sentence."""
    return message.replace("Input should be", "it must be").removesuffix(".")
