"""From the call that does the work to the last event of its request."""

import signal
import traceback
from collections.abc import Callable

from memviz.core.events import Event, Failed, Finished, Recorded
from memviz.core.failure import Cancelled, Cause, Failure, OutOfMemoryError
from memviz.core.run import Run
from memviz.core.trace import Trace


def outcome(work: Callable[[], Trace | Run]) -> Event:
    """Do the work: Recorded for a trace, Finished for a run, Failed for whatever it raises."""
    try:
        result = work()
    # The border: whatever a user's model raises is an answer, not a crash, sys.exit() among it (E10)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return Failed(failure=failure_of(error))
    return Recorded(trace=result) if isinstance(result, Trace) else Finished(run=result)


def cancelled() -> Failed:
    """The last event of a request that nobody waits for any more."""
    return Failed(failure=Failure(cause=Cause.CANCELLED, message="cancelled before it finished"))


def failure_of(error: BaseException) -> Failure:
    """The error in the words of a failure, its traceback in the details."""
    if isinstance(error, Cancelled | KeyboardInterrupt):  # A live step is interrupted as a cell is.
        return cancelled().failure
    if isinstance(error, OutOfMemoryError):
        return error.failure
    details = "".join(traceback.format_exception(error))
    words = str(error) or type(error).__name__
    # torch.OutOfMemoryError is a RuntimeError; it is known by its name, since this part does not know torch.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        message = f"out of memory: {words}; use a smaller batch, recompute or swap more"
        return Failure(cause=Cause.OUT_OF_MEMORY, message=message, details=details)
    named = words if isinstance(error, ValueError) else f"{type(error).__name__}: {words}"
    return Failure(cause=Cause.ERROR, message=named, details=details)


def died(exit_code: int | None) -> Failed:
    """The last event of a request whose process went away, with the exit code or signal in words."""
    details = f"exit code {exit_code}"
    if exit_code is None or exit_code >= 0:
        message = f"the worker process ended by itself ({details}); the next run starts a new one"
    else:
        name = _signal_name(-exit_code)
        details = f"signal {-exit_code} ({name})"
        message = f"the worker process {_HOW.get(name, 'was ended')} by {details}{_WHY.get(name, '')}; the next run starts a new one"
    return Failed(failure=Failure(cause=Cause.DIED, message=message, details=details))


_HOW = {"SIGKILL": "was killed", "SIGSEGV": "was crashed", "SIGABRT": "was aborted", "SIGTERM": "was stopped"}
_WHY = {
    "SIGKILL": ", which is what the system does when the machine runs out of memory; try a smaller size or set a limit",
    "SIGSEGV": ", a bad memory access in native code",
    "SIGBUS": ", which happens when shared memory or a disk is full",
}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
