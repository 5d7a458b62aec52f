"""A measured training step."""

import statistics
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from memviz.core.plan import Plan
from memviz.core.timeline import Timeline
from memviz.core.units import format_bytes, format_seconds


class Agreement(StrEnum):
    """How a step's result compares with the unplanned step's."""

    EXACT = "exact"
    CLOSE = "close"
    DIFFERENT = "different"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradients:
    """The loss, every gradient, and every parameter and buffer after the step, against the unplanned step's.

    Attributes:
        agreement: EXACT: the same bits. CLOSE: within the tolerance of rounding. UNCHECKED: ``reason`` says why.
        max_difference: Largest difference, relative to the largest magnitude of the tensor it is in; 0.0 when exact.
        worst: Name of the tensor with that difference.
        reason: Why it was not checked, or what is known of the difference.
    """

    agreement: Agreement
    max_difference: float = 0.0
    worst: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Run:
    """One plan, stepped for real.

    Attributes:
        title: What was stepped.
        plan: What it ran under.
        timeline: Measured in one metered step.
        step_seconds: Each unmetered step, without the warm-up.
        loss: Of the metered step.
        gradients: Against the unplanned step.
        swapped_out: Bytes moved off the device in the metered step; ``swapped_in`` back onto it.
        stall_seconds: Time in which the step waited for a transfer.
        recomputed_ops: Ops that ran again, and ``recompute_seconds`` they took.
        limit: Bytes that the step had to stay within, or None.
        notes: What went otherwise than planned and was no failure, such as a disk that filled up; for people.
        environment: Versions and machine.
        created: ISO time.
    """

    title: str
    plan: Plan
    timeline: Timeline
    step_seconds: tuple[float, ...]
    loss: float
    gradients: Gradients
    swapped_out: int = 0
    swapped_in: int = 0
    stall_seconds: float = 0.0
    recomputed_ops: int = 0
    recompute_seconds: float = 0.0
    limit: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    created: str = ""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        sizes = f"peak {format_bytes(self.peak)}, activations {format_bytes(self.activations)}"
        agreement = f"gradients {self.gradients.agreement}"
        return f"Run({self.title!r}, {self.plan.label or ('no plan' if self.plan.keeps_everything else 'a plan')!r} on {self.device}: {sizes}, {format_seconds(self.seconds)}, {agreement})"

    @property
    def peak(self) -> int:
        """Most bytes live at once."""
        return self.timeline.peak

    @property
    def activations(self) -> int:
        """Bytes waiting for backward at the end of forward."""
        return self.timeline.activations

    @property
    def device(self) -> str:
        """Name of the device it was measured on."""
        return self.timeline.device

    @cached_property
    def seconds(self) -> float:
        """Median time of an unmetered step."""
        return statistics.median(self.step_seconds) if self.step_seconds else float(self.timeline.seconds[-1])
