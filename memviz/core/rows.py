"""The rows of a predicted timeline while they are written: one for each op that runs, and for each that runs again."""

from itertools import accumulate, repeat

import numpy as np

from memviz.core.holders import summed_holders
from memviz.core.ledger import Ledger
from memviz.core.timeline import Timeline, Transfer
from memviz.core.trace import Phase, Trace, once_per_trace


class Rows:
    """The step's clock, and what the ledger held after each op."""

    def __init__(self, trace: Trace, ledger: Ledger) -> None:
        self.clock = 0.0
        self._trace, self._ledger = trace, ledger
        self._durations = _durations(trace)
        self._next = 0
        self._ops: list[int] = []
        self._seconds: list[float] = []
        self._positions: list[int] = []
        self._marks: list[int] = []
        self._again: list[int] = []

    def reach(self, index: int) -> None:
        """All ops before this one have run, and since the last row the ledger has only changed before the first of them did."""
        first, self._next = self._next, index
        if first < index:
            seconds = list(accumulate(self._durations[first:index], initial=self.clock))
            self.clock = seconds[-1]
            self._seconds += seconds[1:]
            self._ops += range(first, index)
            self._positions += range(2 * first + 1, 2 * index + 1, 2)
            self._marks += repeat(self._ledger.mark, index - first)

    def again(self, op: int) -> None:
        """An op runs once more, before the one that was reached."""
        self.clock += self._durations[op]
        self._again.append(len(self._ops))
        self._seconds.append(self.clock)
        self._ops.append(op)
        self._positions.append(2 * self._next)
        self._marks.append(self._ledger.mark)

    def timeline(self, transfers: list[Transfer]) -> Timeline:
        """What has been written, as a timeline."""
        phases, modules = _phases(self._trace), _modules(self._trace)
        taken = [phases[op] for op in self._ops]
        for row in self._again:
            taken[row] = Phase.BACKWARD
        nbytes = self._ledger.nbytes(self._positions, self._marks)
        peak = int(sum(nbytes.values(), np.zeros(len(taken), np.int64)).argmax()) if taken else None
        holders = [] if peak is None else self._ledger.holders(self._positions[peak], self._marks[peak])
        return Timeline(
            predicted=True,
            device=self._trace.device,
            seconds=np.array(self._seconds, np.float64),
            nbytes=nbytes,
            phases=tuple(taken),
            modules=tuple([modules[op] for op in self._ops]),
            holders=summed_holders(self._trace, holders),
            transfers=tuple(transfers),
            recomputed=tuple(self._again),
        )


@once_per_trace
def _durations(trace: Trace) -> list[float]:
    """Seconds of each op, scaled so that together they take what the plain step took."""
    recorded = sum(op.seconds for op in trace.ops)
    scale = trace.seconds / recorded if trace.seconds > 0 and recorded > 0 else 1.0
    return [op.seconds * scale for op in trace.ops]


@once_per_trace
def _phases(trace: Trace) -> list[Phase]:
    return [op.phase for op in trace.ops]


@once_per_trace
def _modules(trace: Trace) -> list[str]:
    return [op.module for op in trace.ops]
