"""A record of what became live and what went, each storage counted once."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memviz.core.trace import Category, Trace, once_per_trace

KINDS = tuple(Category)


class Columns(NamedTuple):
    """Of each value: its bytes, its storage, and the place of its category in ``KINDS``."""

    nbytes: list[int]
    storage: list[int]
    kind: npt.NDArray[np.int8]


@once_per_trace
def columns(trace: Trace) -> Columns:
    """The trace's values as columns."""
    values, numbers = trace.values, {kind: number for number, kind in enumerate(KINDS)}
    kinds = np.array([numbers[value.category] for value in values], np.int8)
    return Columns([value.nbytes for value in values], [value.storage for value in values], kinds)


class Changes:
    """Live values, and the changes that led there.

    The changes are columns: ``slots``, their ``newest`` value from then on (-1 for none), the value whose category is meant
    (``as_value``), and ``deltas`` in bytes.

    A slot is a storage, of which each live value is a version. It is as large as the largest and counts as what the newest is.
    """

    def __init__(self, trace: Trace) -> None:
        self.nbytes = 0
        """Live bytes."""
        self.slots: list[int] = []
        self.newest: list[int] = []
        self.as_value: list[int] = []
        self.deltas: list[int] = []
        self._sizes, self._storage, _ = columns(trace)
        self._slot_of: dict[int, int] = {}
        self._only: dict[int, int] = {}
        self._versions: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self.deltas)

    def __contains__(self, value: int) -> bool:
        return value in self._slot_of

    def add(self, value: int) -> None:
        """The value, which wasn't live, is from now on."""
        self.put(self._storage[value], value)

    def put(self, slot: int, value: int) -> None:
        """As ``add``, in a slot of the caller's choice."""
        self._slot_of[value] = slot
        if slot in self._versions:
            before = self._versions[slot]
            self._change(slot, before, [*before, value])
        elif slot in self._only:
            before = [self._only.pop(slot)]
            self._change(slot, before, [*before, value])
        else:
            self._only[slot] = value
            self._write(slot, value, value, self._sizes[value])

    def remove(self, value: int) -> None:
        """The value is gone; nothing happens if it wasn't live."""
        slot = self._slot_of.pop(value, None)
        if slot is None:
            return
        if self._only.pop(slot, None) is not None:
            self._write(slot, -1, value, -self._sizes[value])
        else:
            before = self._versions[slot]
            self._change(slot, before, [other for other in before if other != value])

    def _change(self, slot: int, before: list[int], after: list[int]) -> None:
        self._versions[slot] = after
        self._write(slot, after[-1], before[-1], -max(self._sizes[value] for value in before))
        self._write(slot, after[-1], after[-1], max(self._sizes[value] for value in after))
        if len(after) == 1:
            self._only[slot] = self._versions.pop(slot)[0]

    def _write(self, slot: int, newest: int, as_value: int, delta: int) -> None:
        self.nbytes += delta
        self.slots.append(slot)
        self.newest.append(newest)
        self.as_value.append(as_value)
        self.deltas.append(delta)

    def newest_of(self, mark: int) -> dict[int, int]:
        """The newest live version in each slot after that many changes."""
        found = dict(zip(self.slots[:mark], self.newest[:mark], strict=True))
        return {slot: value for slot, value in found.items() if value >= 0}


def running(deltas: npt.NDArray[np.int64], marks: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Sums of the first so many deltas."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(deltas)])[marks]
