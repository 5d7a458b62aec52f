"""The rows of a predicted timeline while they are written: one for each op that runs, and for each that runs again."""

from functools import reduce
from itertools import accumulate, islice
from operator import add

import numpy as np
import numpy.typing as npt

from memviz.core.holders import summed_holders
from memviz.core.ledger import Ledger
from memviz.core.schedule import Indices
from memviz.core.timeline import Timeline, Transfer
from memviz.core.trace import Phase, Trace, Value, once_per_trace


class Rows:
    """The step's clock, and what the ledger held after each op."""

    def __init__(self, trace: Trace, ledger: Ledger) -> None:
        self._trace, self._ledger = trace, ledger
        self._durations = _durations(trace)
        self._clock, self._counted = 0.0, 0
        # Where the walk stopped, and the ledger's mark before each stop.
        self._stops, self._marks = [0], list[int]()
        # What ran again: before which op, which one, and the ledger's mark then.
        self._before, self._again, self._again_marks = list[int](), list[int](), list[int]()
        self._stalls: dict[int, float] = {}

    def reach(self, index: int) -> None:
        """All ops before this one have run, and since the last stop the ledger has only changed there."""
        self._stops.append(index)
        self._marks.append(len(self._ledger.deltas))

    @property
    def clock(self) -> float:
        """Seconds since the step began."""
        index, self._counted = self._counted, self._stops[-1]
        if index < self._counted:
            self._clock = reduce(add, self._durations[index : self._counted], self._clock)
        return self._clock

    def stall(self, until: float) -> None:
        """The step waits, if it isn't that late yet."""
        if until > self.clock:
            self._clock = self._stalls[self._stops[-1] + len(self._again)] = until

    def again(self, op: int) -> None:
        """An op runs once more, before the one that was reached."""
        self._clock = self.clock + self._durations[op]
        self._before.append(self._stops[-1])
        self._again.append(op)
        self._again_marks.append(len(self._ledger.deltas))

    def timeline(self, transfers: list[Transfer]) -> Timeline:
        """What has been written, as a timeline, once the walk is over."""
        phases, modules = _phases(self._trace), _modules(self._trace)
        before, every = np.array(self._before, np.intp), np.arange(len(phases))
        recomputed = (before + np.arange(len(before))).tolist()
        ops = np.insert(every, before, self._again)
        positions = np.insert(2 * every + 1, before, 2 * before)
        marks = np.insert(np.repeat(np.array(self._marks, np.intp), np.diff(self._stops)), before, self._again_marks)
        taken = [phases[op] for op in ops.tolist()]
        for row in recomputed:
            taken[row] = Phase.BACKWARD
        nbytes = self._ledger.columns(positions, marks)
        return Timeline(
            predicted=True,
            device=self._trace.device,
            seconds=self._seconds(ops),
            nbytes=nbytes,
            phases=tuple(taken),
            modules=tuple([modules[op] for op in ops.tolist()]),
            holders=summed_holders(self._trace, self._holders(sum(nbytes.values(), np.zeros(len(ops), np.int64)), positions, marks)),
            transfers=tuple(transfers),
            recomputed=tuple(recomputed),
        )

    def _seconds(self, ops: Indices) -> npt.NDArray[np.float64]:
        durations = [self._durations[op] for op in ops.tolist()]
        starts = {0: 0.0} | self._stalls
        seconds: list[float] = []
        for (first, start), end in zip(starts.items(), [*list(starts)[1:], len(ops)], strict=True):
            seconds += islice(accumulate(durations[first:end], initial=start), 1, None)
        return np.array(seconds, np.float64)

    def _holders(self, total: npt.NDArray[np.int64], positions: Indices, marks: Indices) -> list[Value]:
        if not len(total):
            return []
        peak = int(total.argmax())
        return self._ledger.holders(int(positions[peak]), int(marks[peak]))


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
