"""One walk through the ops of a step under a plan, which stops only where the plan changes something."""

import numpy as np

from memviz.core.actions import actions_of
from memviz.core.ledger import Ledger
from memviz.core.machine import Machine
from memviz.core.plan import Action, Plan
from memviz.core.remaking import Remaking
from memviz.core.rows import Rows
from memviz.core.schedule import moments, schedule
from memviz.core.swaps import Swaps
from memviz.core.timeline import Timeline
from memviz.core.trace import Phase, Trace
from memviz.core.unplanned import Flags


def walk(trace: Trace, plan: Plan, machine: Machine, limit: int | None) -> Timeline:
    """The timeline of the plan; ``limit`` is what counts as full for swapping where the plan gives none."""
    walker = _Walk(trace, plan, machine, limit)
    for index in walker.stops():
        walker.step(index)
    walker.rows.reach(len(trace.ops))
    return walker.rows.timeline(walker.swaps.transfers)


class _Walk:
    """The state between two stops."""

    def __init__(self, trace: Trace, plan: Plan, machine: Machine, limit: int | None) -> None:
        self.trace, self.times = trace, schedule(trace)
        self.actions = actions_of(trace, plan)
        self.moving = plan.swap is not None or Action.SWAP in self.actions.values()
        self.planned = _planned(trace, plan, self.actions)
        self.followed = frozenset(np.flatnonzero(self.planned).tolist())
        self.ledger = Ledger(trace, self.planned)
        self.rows = Rows(trace, self.ledger)
        self.swaps = Swaps(trace, plan, machine, limit, self.ledger, self.rows)
        self.remaking = Remaking(trace, self.actions, self.ledger, self.swaps, self.rows)
        self._bear(-1)

    def stops(self) -> list[int]:
        """The ops at which something happens to a planned value; where values move, also any at which one may leave."""
        times, planned = moments(self.trace), self.planned
        by_value = (column[planned] for column in (times.born, times.freed, times.released))
        used = times.used_at[planned[times.used]]
        moved = [times.packs, times.forward + 1, used + 1] if self.moving else []
        remade = np.array([*self.remaking.ends, *self.remaking.rebuilds], np.intp)
        found = np.unique(np.concatenate([*by_value, used, *moved, remade]))
        return found[(found >= 0) & (found < len(self.trace.ops))].tolist()

    def step(self, index: int) -> None:
        """What ends before the op, what it needs again, what it makes, and what may then leave."""
        self.rows.reach(index)
        if self.moving and index and self.trace.ops[index - 1].phase is Phase.FORWARD:
            self.swaps.relieve(index)
        self.ledger.at = 2 * index
        self._end(index)
        if index in self.remaking.rebuilds:
            self.remaking.rebuild(self.remaking.rebuilds[index])
        self._use(index)
        self.ledger.at = 2 * index + 1
        self._bear(index)
        if self.moving:
            for value in self.times.packs.get(index, ()):
                self.swaps.pack(value, self.actions.get(value))

    def _end(self, index: int) -> None:
        for value in self.swaps.leaving.pop(index, ()):
            self.swaps.leave(value)
        for value in self.swaps.done.pop(index, ()):
            self.ledger.remove(value)
        for value in self.times.freed.get(index, ()):
            if value not in self.remaking.dropped:
                self.ledger.remove(value)
        for value in self.remaking.ends.get(index, ()):
            self.remaking.end(value, index)

    def _use(self, index: int) -> None:
        for value in self.times.uses.get(index, ()):
            if value in self.remaking.dropped:
                self.remaking.use(value)
            elif self.moving:
                self.swaps.use(value, index)

    def _bear(self, index: int) -> None:
        for value in self.times.births.get(index, ()):
            if value in self.followed:
                self.ledger.add(value)


def _planned(trace: Trace, plan: Plan, actions: dict[int, Action]) -> Flags:
    """The values that the plan may treat otherwise than the unplanned step does, and all others in their storages."""
    storage = moments(trace).storage
    touched = [value for value, action in actions.items() if plan.swap is not None or action is not Action.KEEP]
    flags = np.zeros(len(storage), np.bool_)
    flags[storage[touched]] = True
    return flags[storage]
