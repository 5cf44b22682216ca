"""The turns of a run and the messages that wait for one. Nothing is awaited here."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Fault, Json, Message, Output, TurnQuery, TurnView, cut, payload_size
    from perdure.errors import InvalidRequest
    from perdure.workflows import budget, clock
    from perdure.workflows.state import RunState

MAX_TURNS = 500
"""Turns that are remembered, with the ids of their messages."""
PROMPT_ID = "prompt"
"""The id of the message that a run is started with."""
RECENT = 20
"""Turns whose errors are kept as they were; of those before, a line."""
MAX_ERROR = 2_000
"""Characters of the error of a turn, and bytes of its details."""
MAX_LINE = 100
MAX_OUTPUTS = 200_000
"""Bytes of the outputs before the last one."""


def begin(state: RunState) -> None:
    """Begin the turn of the first message that waits."""
    message = state.queue.pop(0)
    state.turn += 1
    state.in_turn, state.interrupt, state.stopping, state.failing = True, None, "", False
    state.turn_usage, state.idle_since, state.failure = state.usage, None, None
    state.refused_message = message.problem
    if not message.problem:
        state.transcript.append(entry(message))
    began = workflow.now().isoformat()
    state.turns.append(TurnView(turn=state.turn, state="running", messages=[message.id], began=began))
    clock.tick(state)
    state.turn_waited, state.counted_input = state.waited, 0


def join(state: RunState) -> None:
    """Let messages join the running turn that were sent to steer it."""
    joining = [message for message in state.queue if message.when_busy == "steer"]
    if not joining:
        return
    state.queue = [message for message in state.queue if message.when_busy != "steer"]
    for message in joining:
        state.transcript.append(entry(message))
    last = state.turns[-1]
    state.turns[-1] = last.model_copy(update={"messages": [*last.messages, *(message.id for message in joining)]})


def end(state: RunState, how: str, *, output: Output | None = None, error: Fault | None = None) -> None:
    """Record what became of the running turn."""
    state.in_turn, state.interrupt, state.stopping = False, None, ""
    error = error and _bounded(error, MAX_ERROR)
    state.failure = error
    used = budget.used_since(state.turn_usage, state.usage)
    update: Json = {"state": how, "output": output, "error": error, "usage": used}
    state.turns[-1] = state.turns[-1].model_copy(update=update | {"ended": workflow.now().isoformat()})
    _trim(state)


def _trim(state: RunState) -> None:
    """Forget the oldest turns, and the outputs before the last one that are too much to keep. The last one is what the
    run ends with, also where turns after it have none."""
    del state.turns[:-MAX_TURNS]
    for index, turn in enumerate(state.turns[:-RECENT]):
        if turn.error is not None:
            state.turns[index] = turn.model_copy(update={"error": _bounded(turn.error, MAX_LINE)})
    room = MAX_OUTPUTS
    earlier = [index for index, turn in enumerate(state.turns) if turn.output is not None][:-1]
    for index in reversed(earlier):
        room -= payload_size(state.turns[index].output)
        if room < 0:
            state.turns[index] = without_output(state.turns[index])


def _bounded(error: Fault, most: int) -> Fault:
    details = error.details if payload_size(error.details) <= most else []
    return error.model_copy(update={"message": cut(error.message, most), "details": details})


def without_output(turn: TurnView) -> TurnView:
    """The turn with the size of its output instead of it."""
    size = payload_size(turn.output)
    return turn.model_copy(update={"output": None, "left_out": size}) if turn.output else turn


def entry(message: Message) -> Json:
    """A message as an entry of the transcript."""
    known: Json = {"id": message.id, "by": message.by}
    more = {name: value for name, value in known.items() if value}
    return {"kind": "user", "content": message.content, "at": message.at.isoformat(), **more}


def find(state: RunState, query: TurnQuery) -> TurnView:
    """The turn that is asked for, or the message that waits for one. Raises `InvalidRequest` where it isn't known."""
    if query.message is not None:
        found = of_message(state, query.message)
        if found is None:
            raise InvalidRequest(f"no message {query.message!r} is known; those of the last {MAX_TURNS} turns are")
        return found
    number = query.turn or max(1, state.turn)
    found = next((turn for turn in state.turns if turn.turn == number), None)
    if found is None and state.turn < number <= state.turn + max(len(state.queue), state.plan is None):
        return TurnView(state="queued")
    if found is None and not state.turns:
        raise InvalidRequest("no turn has begun: the session waits for its first message")
    if found is None:
        raise InvalidRequest(f"turn {number} isn't known; known are {state.turns[0].turn} to {state.turn}")
    return found


def of_message(state: RunState, name: str) -> TurnView | None:
    """The turn that a message began or joined, or that it waits; `None` = no such message is known."""
    for turn in reversed(state.turns):
        if name in turn.messages:
            return turn
    if not any(message.id == name for message in state.queue):
        return None
    if state.done:
        ended = Fault(type="RunClosed", message="the run ended before this message had its turn")
        return TurnView(state="failed", messages=[name], error=ended)
    return TurnView(state="queued", messages=[name])
