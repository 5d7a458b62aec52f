"""What is live in the unplanned step, most of which a plan leaves as it is: worked out once for a trace."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from memviz.core.changes import Changes, columns, running
from memviz.core.schedule import Indices, moments
from memviz.core.trace import Trace, once_per_trace

Flags: TypeAlias = npt.NDArray[np.bool_]
"""One for each value."""


class Unplanned:
    """What is live at each position of the unplanned step.

    A position is twice an op's index when what was freed before it is gone, and one more when what it makes is there; -1 is
    before the first op.

    Attributes:
        as_value: Of each change, a value of the storage that changes, and of the category that is meant.
        deltas: Of each change, the bytes.
        kinds: Of each change, the category's place in ``KINDS``.
        live_bytes: At each position from 0.
        order: Of each value, a number that grows with the position at which its storage came to be.
    """

    def __init__(self, trace: Trace) -> None:
        times = moments(trace)
        end = 2 * len(trace.ops)
        self._born = 2 * times.born + 1
        self._freed = np.where(times.freed > times.born, 2 * times.freed, end)
        self._alone: Flags = np.bincount(times.storage)[times.storage] == 1
        self._shared, self._shared_at = self._follow(trace, np.flatnonzero(~self._alone))
        alone = np.flatnonzero(self._alone)
        nbytes = np.array(columns(trace).nbytes, np.int64)[alone]
        at = np.concatenate([self._born[alone], self._freed[alone], self._shared_at])
        as_value = np.concatenate([alone, alone, np.array(self._shared.as_value, np.intp)])
        deltas = np.concatenate([nbytes, -nbytes, np.array(self._shared.deltas, np.int64)])
        by_position = np.argsort(at, kind="stable")
        self.as_value, self.deltas = as_value[by_position], deltas[by_position]
        self.kinds = columns(trace).kind[self.as_value]
        self._marks = np.searchsorted(at[by_position], np.arange(end), side="right")
        self.live_bytes = self.running(self.deltas)
        self.order = _order(trace)
        self._lives = list(zip(self._born.tolist(), self._freed.tolist(), strict=True))

    def _follow(self, trace: Trace, values: Indices) -> tuple[Changes, Indices]:
        """The changes of some values that share storages, and their positions."""
        changes, at = Changes(trace), list[int]()
        events = [(position, value, True) for position, value in zip(self._born[values].tolist(), values.tolist(), strict=True)]
        events += [(position, value, False) for position, value in zip(self._freed[values].tolist(), values.tolist(), strict=True)]
        for position, value, comes in sorted(events):
            (changes.add if comes else changes.remove)(value)
            at += [position] * (len(changes) - len(at))
        return changes, np.array(at, np.intp)

    def live(self, value: int, position: int) -> bool:
        """Whether the value is live there."""
        born, freed = self._lives[value]
        return born <= position < freed

    def running(self, deltas: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """At each position from 0, the sum of the deltas so far."""
        return running(deltas, self._marks)

    def newest(self, position: int, without: Flags) -> Indices:
        """The newest version of each storage that is live there, but for those of some values."""
        alone = np.flatnonzero(self._alone & (self._born <= position) & (position < self._freed))
        shared = self._shared.newest_of(int(np.searchsorted(self._shared_at, position, side="right")))
        found = np.concatenate([alone, np.array(list(shared.values()), np.intp)])
        return found[~without[found]]


unplanned = once_per_trace(Unplanned)


def _order(trace: Trace) -> npt.NDArray[np.int64]:
    times = moments(trace)
    count = len(trace.values)
    own = order_at(trace, 2 * times.born + 1, np.arange(count))
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, times.storage, own)
    return first[times.storage]


def order_at(trace: Trace, position: npt.ArrayLike, number: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """An ``order`` for a storage that came to be at a position, as one of several (fewer than there are values) there."""
    return np.asarray(position, np.int64) * (len(trace.values) + 1) + np.asarray(number, np.int64)
