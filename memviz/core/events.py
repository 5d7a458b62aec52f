"""What a running step tells whoever waits for it. Events cross threads and processes: plain, frozen, picklable."""

from dataclasses import dataclass, field
from typing import TypeAlias

from memviz.core.failure import Failure
from memviz.core.plan import Plan
from memviz.core.run import Run
from memviz.core.trace import Category, Phase, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One piece of work: record a trace (``plan`` is None) or run a plan.

    Attributes:
        plan: What to run under; None to record instead.
        limit: Bytes to stay within (E9), or None.
        repeats: Unmetered steps to time.
        parameters: The workload's, where it has any; a change of them rebuilds the step.
    """

    plan: Plan | None = None
    limit: int | None = None
    repeats: int = 3
    parameters: dict[str, int | float | str | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the work is, for a progress bar: ``stage`` reads like "step 2 of 4"; ``fraction`` is 0 to 1."""

    stage: str
    fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Live memory while the metered step runs, right after one op."""

    op: int
    seconds: float
    phase: Phase
    nbytes: dict[Category, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Samples since the last such event; at most some 10 of these events a second."""

    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The trace that a request to record asked for. The last event of its request."""

    trace: Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The measured run that a request asked for. The last event of its request."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Why there is no result. The last event of its request."""

    failure: Failure


Event: TypeAlias = Progress | Samples | Recorded | Finished | Failed
