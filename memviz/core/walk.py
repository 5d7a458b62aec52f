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
from memviz.core.trace import Trace
from memviz.core.unplanned import Flags


def walk(trace: Trace, plan: Plan, machine: Machine, limit: int | None) -> Timeline:
    """Go through the ops in order: what ends, what is made again for the op, what it makes, and what may then leave."""
    times, actions = schedule(trace), actions_of(trace, plan)
    planned = _planned(trace, plan, actions)
    ledger = Ledger(trace, planned)
    rows = Rows(trace, ledger)
    swaps = Swaps(trace, plan.swap, machine, limit, ledger, rows)
    remaking = Remaking(trace, actions, ledger, swaps, rows)
    moving = plan.swap is not None or Action.SWAP in actions.values()
    followed = set(np.flatnonzero(planned).tolist())
    for value in followed.intersection(times.births.get(-1, ())):
        ledger.add(value)
    for index in _stops(trace, planned, remaking, moving=moving):
        rows.reach(index)
        ledger.at = 2 * index
        for value in swaps.leaving.pop(index, ()):
            swaps.leave(value)
        for value in times.freed.get(index, ()):
            if value not in remaking.dropped:
                ledger.remove(value)
        for value in remaking.ends.get(index, ()):
            remaking.end(value, index)
        if index in remaking.rebuilds:
            remaking.rebuild(remaking.rebuilds[index])
        for value in times.uses.get(index, ()):
            if value in remaking.dropped:
                remaking.use(value)
            elif moving:
                swaps.use(value)
        ledger.at = 2 * index + 1
        for value in times.births.get(index, ()):
            if value in followed:
                ledger.add(value)
        if moving:
            for value in times.packs.get(index, ()):
                swaps.pack(value, index, actions.get(value))
    rows.reach(len(trace.ops))
    return rows.timeline(swaps.transfers)


def _planned(trace: Trace, plan: Plan, actions: dict[int, Action]) -> Flags:
    """The values that the plan may treat otherwise than the unplanned step does, and all others in their storages."""
    storage = moments(trace).storage
    touched = [value for value, action in actions.items() if plan.swap is not None or action is not Action.KEEP]
    flags = np.zeros(len(storage), np.bool_)
    flags[storage[touched]] = True
    return flags[storage]


def _stops(trace: Trace, planned: Flags, remaking: Remaking, *, moving: bool) -> list[int]:
    """The ops at which something happens to a planned value; where values move, also any at which one may leave."""
    times = moments(trace)
    by_value = (column[planned] for column in (times.born, times.freed, times.released))
    found = np.unique(np.concatenate([*by_value, times.used_at[planned[times.used]], times.packs if moving else [], [*remaking.ends, *remaking.rebuilds]]))
    return found[(found >= 0) & (found < len(trace.ops))].astype(np.intp).tolist()
