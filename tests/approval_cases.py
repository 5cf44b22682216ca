"""The cases A1 to C1 as what the model calls and what people decide; the rest of what must be follows from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Call = tuple[str, int]
"""Tool and argument of a call: no case has two equal ones."""
Verb = Literal["approve", "deny"]
Then = Literal["", "raises", "holds", "begins", "dies"]
"""What a gated tool does in its first attempt. `raises`, `holds` for ever, `dies` (kills its worker): right after its
effect; `begins`: holds for ever before its effect."""
GATED = ("refund", "delete", "pay", "transfer")
RETRIED = ("pay",)
"""Gated tools whose author said that they may be repeated with the same key."""


@dataclass(frozen=True)
class Case:
    """One response of the model with calls, and a last one that is text."""

    calls: Sequence[Call]
    decisions: Mapping[Call, Verb]
    then: Then = ""
    ids: Sequence[str] = field(default_factory=list[str])
    """The ids the provider gives; absent = different ones."""

    @property
    def approved(self) -> list[Call]:
        """The calls that people let run."""
        return [call for call, verb in self.decisions.items() if verb == "approve"]


CASES: dict[str, Case] = {
    "a1": Case([("look", 1), ("refund", 2)], {("refund", 2): "approve"}),
    "a2": Case([("refund", 1), ("refund", 2)], {("refund", 2): "approve", ("refund", 1): "approve"}),
    "b1": Case([("delete", 1), ("refund", 2)], {("refund", 2): "approve", ("delete", 1): "deny"}, ids=["dup", "dup"]),
    "b1_plain": Case([("look", 1), ("refund", 2)], {("refund", 2): "approve"}, ids=["dup", "dup"]),
    "b2": Case([("refund", 1)], {("refund", 1): "approve"}, then="raises"),
    "b2_retried": Case([("pay", 1)], {("pay", 1): "approve"}, then="raises"),
    "b3": Case([("refund", 1)], {("refund", 1): "approve"}),
    "c1": Case([("refund", 1)], {("refund", 1): "deny"}),
    "c1_both": Case([("refund", 1), ("delete", 2)], {("refund", 1): "deny", ("delete", 2): "deny"}),
    "quorum": Case([("transfer", 1)], {("transfer", 1): "approve"}),
}
