"""Every error perdure raises, and the `type` each carries in a workflow's history.

    PerdureError
    ├── DeclarationError      an App, agent, policy or tool is declared wrongly (when the App is built)
    ├── InvalidRequest        what somebody sent can't be used (start, verb or query)
    ├── UnknownAgent          no worker of this task queue serves the agent
    ├── NotPending            a decision for a call that doesn't wait
    ├── AlreadyDecided        a decision for a call that has one
    ├── NotAllowed            somebody decides who may not, or changes what may not be changed
    ├── NotChecked            a decision or result couldn't be checked: no answer of the verifier, say
    ├── RollingOver           the run is continuing as new: send it again
    ├── SessionClosing        a message for a run that takes none any more
    ├── LimitExceeded         a limit of the run is used up
    ├── ModelFailed           the model couldn't be asked, after Temporal's retries
    ├── AgentFailed           the agent ended itself: retries exhausted, cut-off output, a tool that ends the run
    ├── NotCarried            a value can't be written as JSON
    │   └── ArgumentsNotCarried   a tool's arguments don't survive it
    ├── ToolContractViolation what serves a tool's contract gave a result that breaks it
    ├── OutputTooLarge        an output, a response or an input is over Temporal's payload limit
    ├── TranscriptTooLarge    the transcript is too large to continue as new with
    ├── RootMissing           the folder that a tool works in isn't there, on this worker: nothing ran
    ├── ServerUnreachable     what runs a tool, or lists it, can't be reached: nothing ran
    ├── AnswerLost            what runs a tool was lost before it answered: the call may or may not have run
    ├── PayloadStoreError     the payload store can't be read or written, or has lost something
    ├── TranscriptMismatch    a worker's copy of the transcript isn't the workflow's
    └── InternalError         a fault of perdure itself, with the original message

In a workflow each becomes a non-retryable `temporalio.exceptions.ApplicationError` whose `type` is the class name
here, or the name of Pydantic AI's own error where that is what ended the run (`UnexpectedModelBehavior`,
`ContentFilterError`, …). Those names are wire format: they don't change.
"""

from __future__ import annotations


class PerdureError(Exception):
    """Base of all errors of perdure. Its class name is the `type` in a workflow's history."""

    @property
    def type(self) -> str:
        """The name this error has in history."""
        return type(self).__name__


class DeclarationError(PerdureError, ValueError):
    """Something declared in code is wrong. Raised when the `App` is built, before any worker polls; mend the code."""


class InvalidRequest(PerdureError, ValueError):
    """What was sent can't be used: a missing or unknown field, a wrong type, a prompt that is too large.

    An update is refused with it and nothing is recorded; a start fails at once with it. Mend the request, send again.
    """


class UnknownAgent(PerdureError, LookupError):
    """No agent of that name is served. The run fails at once, naming the known ones; start a worker that serves it."""


class NotPending(PerdureError, LookupError):
    """No call of that key waits, or it waits for something else. Names what does; nothing is changed."""


class AlreadyDecided(PerdureError):
    """The call has its decision, which was used: the first valid one wins. Nothing is changed."""


class NotAllowed(PerdureError):
    """Whoever decides isn't among the approvers, isn't verified, or edits what may not be edited. Nothing changes."""


class NotChecked(PerdureError):
    """What was sent couldn't be checked: the worker's verifier, or its check of edited arguments or of a result, failed
    or didn't answer. Nothing is changed; send it again."""


class RollingOver(PerdureError):
    """The run is about to continue as new. Nothing is changed; send it again at once: perdure's client does."""


class SessionClosing(PerdureError):
    """The session is being closed, so it takes no further message. Nothing is changed; start another one."""


class LimitExceeded(PerdureError):
    """A limit of the run or turn (requests, tool calls, tokens, cost, deadline) is used up, and nobody raised it. The
    turn fails, and a run of one turn with it; its transcript stays readable. Raise the limit: `docs/budgets.md`."""


class ModelFailed(PerdureError):
    """The model couldn't be asked: a permanent error of the provider, or the retries are used up. The run fails."""


class AgentFailed(PerdureError):
    """The agent itself ended the run. In history its `type` is the original error's name where it has one."""


class NotCarried(PerdureError, ValueError):
    """An output or a response can't be written as JSON; the message names its type. Not retried; the run fails."""


class ArgumentsNotCarried(NotCarried):
    """A tool's arguments lose something when they are written as JSON, so what was shown wouldn't be what runs.

    Not retried; the run fails, naming the field. Change the argument's type.
    """


class ToolContractViolation(PerdureError):
    """What serves a tool gave a result that isn't what its contract says: an error in a program, so the model isn't
    asked to mend it. Not retried, whatever the tool's effect; the run fails. Mend the handler, or the contract."""


class OutputTooLarge(PerdureError, ValueError):
    """A value is larger than Temporal carries (2 MB a payload). Not retried; the message names the sizes."""


class TranscriptTooLarge(PerdureError, ValueError):
    """What a run has to take with it when it continues as new is too large (1.5 MB, compressed). The run fails; its
    transcript stays readable. Configure a payload store (`PERDURE_PAYLOADS`), or compaction (`compact_above`)."""


class RootMissing(PerdureError, FileNotFoundError):
    """The root folder of a tool (`workspace`, `patching`) isn't there on the worker that runs the call, or may not be
    opened. Not retried, whatever the tool's effect; the run fails. Mount it there, or let another worker serve the
    tool: `docs/workspace.md`."""


class ServerUnreachable(PerdureError):
    """What runs a tool, or lists it, can't be reached, so nothing ran. A toolset raises it. A model request is tried
    again; a call too, where its policy has attempts; then the model is told its message, so that holds no secret."""


class AnswerLost(PerdureError):
    """What runs a tool was lost before it answered. A toolset raises it. An `unsafe` call is then `unknown`, others are
    repeated, and in the end `failed`. The message is told to the model, so it holds no secret."""


class PayloadStoreError(PerdureError):
    """The payload store (`PERDURE_PAYLOADS`) can't be read or written, or a payload is missing there or damaged.

    In a worker the task is tried again until it can; a client raises it. The message names the store and what to do.
    """


class TranscriptMismatch(PerdureError):
    """The transcript a worker has or was given isn't the one the workflow names. Retried 3 times after asking anew."""


class InternalError(PerdureError):
    """perdure itself is at fault. The run fails with the original message instead of hanging; please report it."""
