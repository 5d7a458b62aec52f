"""Memory over one training step, predicted or measured."""

from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memviz.core.trace import PERSISTENT, Category, Phase
from memviz.core.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A value that is live at the peak: who made it, where, and how much it holds."""

    key: str
    module: str
    op: str
    source: str | None
    nbytes: int
    category: Category
    count: int = 1
    """How many values were summed into this line (the turns of a loop share one)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Bytes that a swap moved: out of the device at ``start`` or back in, in seconds since the step began."""

    key: str
    nbytes: int
    out: bool
    start: float
    end: float


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Timeline:
    """Live bytes after each op, by category.

    Attributes:
        predicted: True if ``simulate`` made it, False if a real step was metered.
        device: The device's name.
        seconds: float64, shape (n,): when each op ended, since the step began.
        nbytes: int64 arrays of shape (n,) for every category that occurs.
        phases: n entries.
        modules: n entries: the module path that each op ran in.
        reserved: int64, shape (n,): what the allocator held, or None where it can't be asked (CPU).
        holders: Who is live at the peak, largest first.
        transfers: Swaps, in order.
        recomputed: Indices of ops that a plan added.
    """

    predicted: bool
    device: str
    seconds: npt.NDArray[np.float64]
    nbytes: dict[Category, npt.NDArray[np.int64]]
    phases: tuple[Phase, ...]
    modules: tuple[str, ...]
    reserved: npt.NDArray[np.int64] | None = None
    holders: tuple[Holder, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    recomputed: tuple[int, ...] = field(default=())

    def __eq__(self, other: object) -> bool:
        """Whether all of both is equal; arrays, which have no truth of their own, by their values."""
        if not isinstance(other, Timeline):
            return NotImplemented
        pairs = [(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)]
        return all(_equal(mine, others) for mine, others in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        how = "predicted for" if self.predicted else "measured on"
        return f"Timeline({how} {self.device}: {len(self.seconds)} ops, peak {format_bytes(self.peak)})"

    @cached_property
    def total(self) -> npt.NDArray[np.int64]:
        """All categories together, shape (n,)."""
        return np.sum([np.zeros(len(self.seconds), np.int64), *self.nbytes.values()], axis=0)

    @cached_property
    def peak_index(self) -> int:
        """Index of the first op at which the peak is reached; 0 for a timeline without ops."""
        return int(self.total.argmax()) if len(self.total) else 0

    @cached_property
    def peak(self) -> int:
        """Most bytes live at once."""
        return int(self.total.max(initial=0))

    @cached_property
    def end_of_forward(self) -> int:
        """Index of the last forward op before the first op of another phase."""
        return next((i for i, phase in enumerate(self.phases) if phase is not Phase.FORWARD), len(self.phases)) - 1

    @cached_property
    def activations(self) -> int:
        """Bytes that wait for backward at the end of forward: all but parameters, buffers, inputs, gradients and optimizer state."""
        if not 0 <= self.end_of_forward < len(self.seconds):
            return 0
        return int(sum(column[self.end_of_forward] for kind, column in self.nbytes.items() if kind not in PERSISTENT))


def _equal(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(np.array_equal(one[kind], other[kind]) for kind in one)
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    return bool(one == other)
