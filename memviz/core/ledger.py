"""Live bytes by category while a simulated step goes on."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from memviz.core.changes import KINDS, Changes, columns, running
from memviz.core.schedule import Indices
from memviz.core.trace import Category, Trace, Value
from memviz.core.unplanned import Flags, order_at, unplanned


class Ledger(Changes):
    """Which values are live. Versions of one storage share its bytes; a value made again has a storage of its own.

    Only the ``planned`` values, of which no storage has others, are followed; the rest does what it does in the unplanned step.
    ``at`` is the position (see Unplanned) that the walk has reached.
    """

    def __init__(self, trace: Trace, planned: Flags) -> None:
        super().__init__(trace)
        self.at = -1
        self._trace, self._planned, self._unplanned = trace, planned, unplanned(trace)
        self._is_planned: list[bool] = planned.tolist()
        self._again: dict[int, int] = {}

    def __contains__(self, value: int) -> bool:
        return value in self._slot_of or (not self._is_planned[value] and self._unplanned.live(value, self.at))

    @property
    def live(self) -> int:
        """Bytes that are live now."""
        return self.nbytes + self._rest_live[self.at]

    def add_again(self, value: int) -> None:
        """The value has been recomputed, rebuilt or fetched; nothing happens if it is live."""
        if value not in self:
            self._again.setdefault(-1 - value, self.at)
            self.put(-1 - value, value)

    @cached_property
    def _rest(self) -> npt.NDArray[np.int64]:
        """The unplanned step's changes in bytes, without those of planned values."""
        return np.where(self._planned[self._unplanned.as_value], 0, self._unplanned.deltas)

    @cached_property
    def _rest_live(self) -> list[int]:
        return self._unplanned.running(self._rest).tolist()

    def columns(self, positions: Indices, marks: Indices) -> dict[Category, npt.NDArray[np.int64]]:
        """Bytes of every category that occurs, at these positions and after that many changes."""
        kinds = columns(self._trace).kind[np.array(self.as_value, np.intp)]
        deltas = np.array(self.deltas, np.int64)
        found = {}
        for number, kind in enumerate(KINDS):
            rest = self._unplanned.running(np.where(self._unplanned.kinds == number, self._rest, 0))[positions]
            column = rest + running(np.where(kinds == number, deltas, 0), marks)
            if column.any():
                found[kind] = column
        return found

    def holders(self, position: int, mark: int) -> list[Value]:
        """The newest live version of each storage, in the order in which they came to be."""
        slots, order = self.newest_of(mark), self._unplanned.order
        numbers = {slot: number for number, slot in enumerate(self._again)}
        again = [order_at(self._trace, self._again[slot], numbers[slot]) if slot < 0 else order[value] for slot, value in slots.items()]
        rest = self._unplanned.newest(position, self._planned)
        values = np.concatenate([rest, np.array(list(slots.values()), np.intp)])
        by_order = np.argsort(np.concatenate([order[rest], np.array(again, np.int64)]), kind="stable")
        return [self._trace.values[value] for value in values[by_order].tolist()]
