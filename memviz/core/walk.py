"""One walk through the ops of a step under a plan, which stops only where the plan changes something."""

from collections.abc import Iterator
from heapq import heappop

import numpy as np

from memviz.core.actions import actions_of
from memviz.core.ledger import Ledger
from memviz.core.machine import Machine
from memviz.core.plan import Action, Plan
from memviz.core.remaking import Remaking
from memviz.core.rows import Rows
from memviz.core.schedule import Indices, moments, schedule
from memviz.core.swaps import Swaps
from memviz.core.timeline import Timeline
from memviz.core.trace import Trace
from memviz.core.unplanned import Flags, unplanned


def walk(trace: Trace, plan: Plan, machine: Machine, limit: int | None) -> Timeline:
    """The timeline of the plan; ``limit`` is what counts as full for swapping where the plan gives none."""
    walker = _Walk(trace, plan, machine, limit)
    for index in walker.stops():
        walker.step(index)  # It may add a stop.
    walker.rows.reach(len(trace.ops))
    return walker.rows.timeline(walker.swaps.transfers)


class _Walk:
    """The state between two stops, and the ops at which to stop: for each kind of thing that happens to a planned value."""

    def __init__(self, trace: Trace, plan: Plan, machine: Machine, limit: int | None) -> None:
        self.trace, self.times = trace, schedule(trace)
        self.actions = actions_of(trace, plan)
        planned, columns = _planned(trace, plan, self.actions), moments(trace)
        self.followed = frozenset(np.flatnonzero(planned).tolist())
        self.ledger = Ledger(trace, planned)
        self.rows = Rows(trace, self.ledger)
        self.swaps = Swaps(trace, plan, machine, limit, self.ledger, self.rows)
        self.remaking = Remaking(trace, self.actions, self.ledger, self.swaps, self.rows)
        self.moving = plan.swap is not None or Action.SWAP in self.actions.values()
        used = columns.used_at[planned[columns.used]]
        self.born, self.used, self.freed = _set(columns.born[planned]), _set(used), _set(columns.freed[planned])
        self.packed = _set(columns.packs) if self.moving else frozenset[int]()
        self.relieved = _set(self._crowded(columns.forward) + 1) if self.moving else frozenset[int]()
        self._bear(-1)

    def _crowded(self, forward: Indices) -> Indices:
        """The ops of forward after which something may leave: even if nothing has been dropped, the device may be too full only there."""
        urgent = [save.packed for save in self.trace.saves if self.actions.get(save.value) is Action.SWAP]
        full = unplanned(self.trace).live_bytes[2 * forward + 1] > self.swaps.threshold
        return forward[full | np.isin(forward, urgent)]

    def stops(self) -> Iterator[int]:
        """In order, the ops at which something happens to a planned value, or to one that was sent."""
        found = self.born.union(self.used, self.freed, self.packed, self.relieved, self.remaking.ends, self.remaking.rebuilds)
        last, due = -1, self.swaps.due
        for index in [*sorted(found), len(self.trace.ops)]:
            while due and due[0] < index:
                sent = heappop(due)
                if sent > last:
                    yield (last := sent)
            if 0 <= index < len(self.trace.ops):
                yield (last := index)

    def step(self, index: int) -> None:
        """What leaves after the op before, what ends, what the op needs again, what it makes, and what is saved of it."""
        self.rows.reach(index)
        if index in self.relieved:
            self.swaps.relieve(index)
        self.ledger.at = 2 * index
        if self.moving:
            self.swaps.let_go(index)
        if index in self.freed:
            self._free(index)
        if index in self.remaking.ends:
            self.remaking.end(index)
        if index in self.remaking.rebuilds:
            self.remaking.rebuild(index)
        if index in self.used:
            self._use(index)
        self.ledger.at = 2 * index + 1
        if index in self.born:
            self._bear(index)
        if index in self.packed:
            for value in self.times.packs[index]:
                self.swaps.pack(value, self.actions.get(value))

    def _free(self, index: int) -> None:
        for value in self.times.freed[index]:
            if value not in self.remaking.dropped:
                self.ledger.remove(value)

    def _use(self, index: int) -> None:
        for value in self.times.uses[index]:
            if value in self.remaking.dropped:
                self.remaking.use(value)
            elif self.moving:
                self.swaps.use(value, index)

    def _bear(self, index: int) -> None:
        for value in self.times.births.get(index, ()):
            if value in self.followed:
                self.ledger.add(value)


def _set(indices: Indices) -> frozenset[int]:
    return frozenset(indices.tolist())


def _planned(trace: Trace, plan: Plan, actions: dict[int, Action]) -> Flags:
    """The values that the plan may treat otherwise than the unplanned step does, and all others in their storages."""
    storage = moments(trace).storage
    touched = [value for value, action in actions.items() if plan.swap is not None or action is not Action.KEEP]
    flags = np.zeros(len(storage), np.bool_)
    flags[storage[touched]] = True
    return flags[storage]
