"""Live bytes by category while a simulated step goes on."""

from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from memviz.core.changes import KINDS, Changes, columns, running
from memviz.core.trace import Category, Trace, Value
from memviz.core.unplanned import first_births, unplanned

Flags: TypeAlias = npt.NDArray[np.bool_]
"""One for each value."""


class Ledger:
    """Which values are live. Versions of one storage share its bytes; a value made again has a storage of its own.

    Only the ``planned`` values, of which no storage has others, are followed; the rest does what it does in the unplanned step.
    ``at`` is the position (see Unplanned) that the walk has reached.
    """

    def __init__(self, trace: Trace, planned: Flags) -> None:
        self.at = -1
        self._trace, self._planned = trace, planned
        self._unplanned, self._own = unplanned(trace), Changes(trace)
        self._is_planned: list[bool] = planned.tolist()
        self._again: dict[int, tuple[int, int]] = {}

    def __contains__(self, value: int) -> bool:
        return value in self._own or (not self._is_planned[value] and self._unplanned.live(value, self.at))

    @property
    def mark(self) -> int:
        """Number of changes of what is followed, so far."""
        return len(self._own)

    @property
    def live(self) -> int:
        """Bytes that are live now."""
        return self._own.live + self._rest_live[self.at]

    def add(self, value: int, *, again: bool = False) -> None:
        """The value is live from now on; ``again`` if it has been recomputed, rebuilt or fetched."""
        if value not in self:
            if again:
                self._again.setdefault(-1 - value, (self.at, len(self._again)))
            self._own.add(value, again=again)

    def remove(self, value: int) -> None:
        """The value is gone; nothing happens if it wasn't live, or isn't followed."""
        self._own.remove(value)

    @cached_property
    def _rest(self) -> npt.NDArray[np.int64]:
        """The unplanned step's changes in bytes, without those of planned values."""
        return np.where(self._planned[self._unplanned.as_value], 0, self._unplanned.deltas)

    @cached_property
    def _rest_live(self) -> list[int]:
        return running(self._rest, self._unplanned.marks).tolist()

    def nbytes(self, positions: list[int], marks: list[int]) -> dict[Category, npt.NDArray[np.int64]]:
        """Bytes of every category that occurs, at these positions and after that many changes."""
        at, own = np.array(positions, np.intp), np.array(marks, np.intp)
        kinds, deltas = columns(self._trace).kind[np.array(self._own.as_value, np.intp)], np.array(self._own.deltas, np.int64)
        found = {}
        for number, kind in enumerate(KINDS):
            rest = running(np.where(self._unplanned.kinds == number, self._rest, 0), self._unplanned.marks[at])
            column = rest + running(np.where(kinds == number, deltas, 0), own)
            if column.any():
                found[kind] = column
        return found

    def holders(self, position: int, mark: int) -> list[Value]:
        """The newest live version of each storage, in the order in which they came to be."""
        slots = {slot: value for slot, value in self._unplanned.newest(position).items() if not self._is_planned[value]}
        slots |= self._own.newest_of(mark)
        born = first_births(self._trace) | self._again
        return [self._trace.values[slots[slot]] for slot in sorted(slots, key=born.__getitem__)]
