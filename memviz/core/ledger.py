"""Live bytes by category while a simulated step goes on, each storage counted once."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memviz.core.trace import Category, Trace, Value, once_per_trace

_KINDS = tuple(Category)


class _Columns(NamedTuple):
    """Of each value: its bytes, its storage, and the place of its category in ``_KINDS``."""

    nbytes: list[int]
    storage: list[int]
    kind: list[int]


@once_per_trace
def _columns(trace: Trace) -> _Columns:
    values, numbers = trace.values, {kind: number for number, kind in enumerate(_KINDS)}
    return _Columns([v.nbytes for v in values], [v.storage for v in values], [numbers[v.category] for v in values])


class Ledger:
    """Which values are live. Versions of one storage share its bytes; a value made again has a storage of its own.

    It writes down changes, in order, and adds them up at the end: ``mark`` is how many there are so far.
    """

    def __init__(self, trace: Trace) -> None:
        self.live = 0
        self._trace = trace
        self._nbytes, self._storage, self._kind = _columns(trace)
        self._slots: dict[int, list[int]] = {}
        self._slot_of: dict[int, int] = {}
        # The changes: in which slot, its newest value from then on (-1 for none), and how many bytes more of which category.
        self._changed: list[int] = []
        self._newest: list[int] = []
        self._kinds: list[int] = []
        self._deltas: list[int] = []

    def __contains__(self, value: int) -> bool:
        return value in self._slot_of

    @property
    def mark(self) -> int:
        """Number of changes so far."""
        return len(self._deltas)

    def add(self, value: int, *, again: bool = False) -> None:
        """The value is live from now on; ``again`` if it has been recomputed, rebuilt or fetched."""
        if value in self._slot_of:
            return
        slot = self._slot_of[value] = -1 - value if again else self._storage[value]
        before = self._slots.get(slot)
        if before is None:
            self._slots[slot] = [value]
            self._write(slot, value, value, self._nbytes[value])
        else:
            self._change(slot, before, [*before, value])

    def remove(self, value: int) -> None:
        """The value is gone; nothing happens if it wasn't live."""
        slot = self._slot_of.pop(value, None)
        if slot is None:
            return
        before = self._slots[slot]
        if len(before) == 1:
            del self._slots[slot]
            self._write(slot, -1, value, -self._nbytes[value])
        else:
            self._change(slot, before, [other for other in before if other != value])

    def _change(self, slot: int, before: list[int], after: list[int]) -> None:
        """A slot is as large as its largest version, and counts as what its newest is."""
        self._slots[slot] = after
        self._write(slot, after[-1], before[-1], -max(self._nbytes[value] for value in before))
        self._write(slot, after[-1], after[-1], max(self._nbytes[value] for value in after))

    def _write(self, slot: int, newest: int, counted_as: int, delta: int) -> None:
        self.live += delta
        self._changed.append(slot)
        self._newest.append(newest)
        self._kinds.append(self._kind[counted_as])
        self._deltas.append(delta)

    def nbytes(self, marks: list[int]) -> dict[Category, npt.NDArray[np.int64]]:
        """Bytes of every category that occurs, after that many changes each."""
        kinds, deltas, at = np.array(self._kinds, np.int8), np.array(self._deltas, np.int64), np.array(marks, np.intp)
        columns = {kind: _running(np.where(kinds == number, deltas, 0), at) for number, kind in enumerate(_KINDS)}
        return {kind: column for kind, column in columns.items() if column.any()}

    def holders(self, mark: int) -> list[Value]:
        """The newest live version of each storage after that many changes."""
        slots = dict(zip(self._changed[:mark], self._newest[:mark], strict=True))
        return [self._trace.values[newest] for newest in slots.values() if newest >= 0]


def _running(deltas: npt.NDArray[np.int64], marks: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Sums of the first so many deltas."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(deltas)])[marks]
