"""The limit of one request's input tokens, as Pydantic AI checks it: before the request, where the model can count.

What the model reports afterwards is looked at by the workflow, which can wait there until the limit is raised.
"""

from __future__ import annotations

from pydantic_ai import UsageLimits
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.models import Model


class TooLarge(UsageLimitExceeded):
    """A request wasn't sent: it has more input tokens than it may have."""

    def __init__(self, tokens: int) -> None:
        super().__init__(f"the request has {tokens} input tokens")
        self.tokens = tokens


class CountedLimits(UsageLimits):
    """Raises `TooLarge` where the count before the request is over the limit, and nothing after it."""

    _counted = False

    def check_per_request_input_tokens(self, request_input_tokens: int) -> None:
        """Called with the count first, and with what the model reports then."""
        limit, first = self.per_request_input_tokens_limit, not self._counted
        self._counted = True
        if first and limit is not None and request_input_tokens > limit:
            raise TooLarge(request_input_tokens)


def usage_limits(model: Model, request_input_tokens: int | None) -> UsageLimits:
    """The limits of one activity: all others are the workflow's."""
    if request_input_tokens is None or type(model).count_tokens is Model.count_tokens:
        return UsageLimits(request_limit=None)
    return CountedLimits(
        request_limit=None, per_request_input_tokens_limit=request_input_tokens, count_tokens_before_request=True
    )
