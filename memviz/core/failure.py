"""How a run ends without a result."""

from dataclasses import dataclass, field
from enum import StrEnum

from memviz.core.timeline import Holder
from memviz.core.units import format_bytes


class Cause(StrEnum):
    """Why a run has no result."""

    OUT_OF_MEMORY = "out_of_memory"
    ERROR = "error"
    DIED = "died"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run ended without a result, in words for the person who asked for it.

    Attributes:
        cause: The kind.
        message: One sentence, with the fix in it where there is one.
        details: A traceback or an exit code.
        label: What was tried: the plan's name.
        module: Where an out-of-memory happened, with ``op``, ``requested`` bytes, ``limit`` and ``holders`` (E9).
    """

    cause: Cause
    message: str
    details: str = ""
    label: str = ""
    module: str = ""
    op: str = ""
    requested: int = 0
    live: int = 0
    limit: int = 0
    holders: tuple[Holder, ...] = field(default=())


class OutOfMemoryError(MemoryError):
    """The step crossed its limit (E9); ``failure`` says at which op and who holds the rest."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def out_of_memory(*, module: str, op: str, requested: int, live: int, limit: int, holders: tuple[Holder, ...]) -> Failure:
    """E9's report: the same words on every device."""
    held = ", ".join(f"{_named(holder)} ({format_bytes(holder.nbytes)})" for holder in holders[:3])
    message = (
        f"out of memory: {op} in {module or 'the model'} asked for {format_bytes(requested)} "
        f"while {format_bytes(live)} of the {format_bytes(limit)} limit were in use; the largest holders are {held or 'unknown'}"
    )
    return Failure(
        cause=Cause.OUT_OF_MEMORY, message=message, module=module, op=op, requested=requested, live=live, limit=limit, holders=holders
    )


def _named(holder: Holder) -> str:
    """What an op made, or what existed before the step by its own name."""
    return f"{holder.module or 'the model'} {holder.op}" if "@" in holder.key else f"{holder.op} {holder.key}".strip()


class Cancelled(Exception):
    """The step was stopped between two ops because nobody waits for it any more."""
