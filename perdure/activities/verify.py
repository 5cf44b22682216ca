"""The activity `verify`: whose token comes with a decision. Asks the app's verifier."""

from __future__ import annotations

from typing import Any, cast

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure.activities.faults import log_error
from perdure.activities.reported import Reported
from perdure.activities.runtime import Runtime
from perdure.contracts import Principal, Verified, VerifyInput
from perdure.errors import NotAllowed


class Verify:
    """Holds what the worker has opened; its method is the activity. Short: 10 s, 3 attempts."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(name="verify")
    async def verify(self, input: VerifyInput) -> Verified:
        """The principal, or why there is none. Fails, to be repeated, where the verifier raises anything else than
        `NotAllowed`: its text may hold a secret and goes to the worker's log only."""
        verifier = self._runtime.app.verifier
        if verifier is None:
            raise ApplicationError("this worker's App has no verifier", type="NotChecked")
        try:
            found = cast("Any", await verifier(input.token, input.use))
        except NotAllowed as error:
            return Verified(problem=str(error))
        except Exception as error:
            log_error("the verifier failed", error)
            raise Reported(f"the verifier raised {type(error).__name__}", type="NotChecked") from None
        if not isinstance(found, Principal):
            raise ApplicationError(
                f"the verifier returned {type(found).__name__}, not a Principal", type="NotChecked", non_retryable=True
            )
        return Verified(principal=found)
