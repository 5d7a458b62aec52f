"""The changes of the unplanned step, of which a plan leaves most as they are: worked out once for a trace."""

from collections.abc import Iterator

import numpy as np

from memviz.core.changes import Changes, columns
from memviz.core.schedule import schedule
from memviz.core.trace import Trace, once_per_trace


class Unplanned:
    """What is live at each position of the unplanned step.

    A position is twice an op's index when what was freed before it is gone, and one more when what it makes is there.

    Attributes:
        marks: At each position, the number of changes so far.
        as_value: See Changes, as ``deltas``.
        kinds: Of each change, the place of its category in ``KINDS``.
    """

    def __init__(self, trace: Trace) -> None:
        self._values, self._changes = trace.values, Changes(trace)
        self.marks = np.array(list(self._follow(trace)), np.intp)
        self.as_value = np.array(self._changes.as_value, np.intp)
        self.deltas = np.array(self._changes.deltas, np.int64)
        self.kinds = columns(trace).kind[self.as_value]

    def _follow(self, trace: Trace) -> Iterator[int]:
        times, changes = schedule(trace), self._changes
        for value in times.births.get(-1, ()):
            changes.add(value)
        for index in range(len(trace.ops)):
            for value in times.freed.get(index, ()):
                changes.remove(value)
            yield len(changes)
            for value in times.births.get(index, ()):
                changes.add(value)
            yield len(changes)

    def live(self, value_id: int, position: int) -> bool:
        """Whether the value is live there."""
        value = self._values[value_id]
        return 2 * value.born < position and not (value.born < value.freed and 2 * value.freed <= position)

    def newest(self, position: int) -> dict[int, int]:
        """The newest version of each storage that is live there."""
        return self._changes.newest_of(int(self.marks[position]))


unplanned = once_per_trace(Unplanned)


@once_per_trace
def first_births(trace: Trace) -> dict[int, tuple[int, int]]:
    """Where each storage comes to be: the position, and the value that is its first version."""
    found: dict[int, tuple[int, int]] = {}
    for value in sorted(trace.values, key=lambda value: (value.born, value.id)):
        found.setdefault(value.storage, (2 * value.born + 1, value.id))
    return found
