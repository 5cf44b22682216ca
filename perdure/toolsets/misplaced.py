"""A toolset among the tools of an agent: what is said where Pydantic AI takes it for a function."""

from __future__ import annotations

from perdure.errors import DeclarationError


class MisplacedToolset(DeclarationError, AttributeError):
    """Also an `AttributeError`: to those who only look whether there is a name, there is none."""

    @property
    def type(self) -> str:
        """Told as what it is."""
        return DeclarationError.__name__


class NoFunction:
    """A toolset that says so where its name as a function is asked for."""

    @property
    def __name__(self) -> str:
        raise MisplacedToolset(f"{type(self).__name__} is a toolset, and no tool: Agent(…, toolsets=[…])")
