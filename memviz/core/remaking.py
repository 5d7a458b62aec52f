"""How a simulated step makes dropped values again: by recomputing them (E2), or by rebuilding them from a block's output (E8)."""

from collections import defaultdict

from memviz.core.actions import block_part, reversible_blocks
from memviz.core.derive import chain, held_anyway
from memviz.core.ledger import Ledger
from memviz.core.plan import Action
from memviz.core.rows import Rows
from memviz.core.schedule import ByOp, backward_starts, schedule
from memviz.core.swaps import Swaps
from memviz.core.trace import Trace


class Remaking:
    """What the plan drops: when it goes, and how it comes back."""

    def __init__(self, trace: Trace, actions: dict[int, Action], ledger: Ledger, swaps: Swaps, rows: Rows) -> None:
        self._trace, self._ledger, self._swaps, self._rows = trace, ledger, swaps, rows
        self._recomputed = {value for value, action in actions.items() if action is Action.RECOMPUTE}
        self.dropped = self._recomputed | {value for value, action in actions.items() if action is Action.REVERSE}
        self._anyway = held_anyway(trace)
        self._first_use, self._last_use = schedule(trace).first_use, schedule(trace).last_use
        self.ends: ByOp = defaultdict(list)
        """Where dropped values go."""
        self.rebuilds: ByOp = defaultdict(list)
        """Where reversible blocks start backward, so that what they dropped comes back."""
        for value in sorted(self.dropped):
            self._schedule(value)

    def _schedule(self, value_id: int) -> None:
        value = self._trace.values[value_id]
        for index in {value.released, value.freed}:
            self.ends[index].append(value_id)
        first = self._first_use.get(value_id)
        if first is None:
            return
        self.ends[max(value.freed, self._last_use[value_id] + 1)].append(value_id)
        if value_id not in self._recomputed:
            part = block_part(self._trace, value) or ""
            between = part in reversible_blocks(self._trace)
            start = first if between else backward_starts(self._trace).get(part, first)
            self.rebuilds[min(start, first)].append(value_id)

    def end(self, index: int) -> None:
        """Dropped values go before this op, unless they have been made again and are still to be used."""
        for value in self.ends[index]:
            if not self._last_use.get(value, -1) >= index > self._first_use.get(value, index):
                self._ledger.remove(value)

    def rebuild(self, index: int) -> None:
        """Values of the reversible block whose backward starts at this op come back, one op's at a time."""
        again = [value for value in self.rebuilds[index] if value not in self._ledger]
        producers = {value: self._trace.values[value].producer for value in again}
        for op in sorted({producer for producer in producers.values() if producer is not None}):
            for value in again:
                if producers[value] == op:
                    self._ledger.add_again(value)
            self._rows.again(op)

    def use(self, value: int) -> None:
        """Backward needs the dropped value: unless it is still there, it is made again."""
        if value not in self._ledger:
            if value in self._recomputed:
                self._recompute(value)
            else:
                self._ledger.add_again(value)

    def _held(self, value: int) -> bool:
        return value in self._anyway or (value in self._trace.saves_of and (value in self._ledger or value in self._swaps))

    def _recompute(self, target: int) -> None:
        producer = self._trace.values[target].producer
        # Where a kept value that the recipe reads is gone by now, the last op stands in for the chain.
        ops = chain(self._trace, target, self._held) or ((producer,) if producer is not None else ())
        last_read = {value: op for op in ops for value in self._trace.ops[op].inputs}
        transient: set[int] = set()
        for index in ops:
            self._remove(transient, {value for value in self._trace.ops[index].mutates if last_read.get(value) == index})
            transient.update(self._make(index))
            self._rows.again(index)
            self._remove(transient, {value for value in transient if value != target and last_read.get(value, -1) <= index})

    def _make(self, index: int) -> list[int]:
        """Run an op again; what it made that no later use waits for."""
        made = [value for value in self._trace.ops[index].outputs if value not in self._ledger]
        for value in made:
            self._ledger.add_again(value)
        return [value for value in made if not (value in self.dropped and value in self._last_use)]

    def _remove(self, transient: set[int], gone: set[int]) -> None:
        for value in transient & gone:
            self._ledger.remove(value)
        transient -= gone
