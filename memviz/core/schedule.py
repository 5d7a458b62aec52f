"""What of a trace happens at which op, whatever the plan: worked out once, so that a moved slider only walks."""

from collections import defaultdict
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from memviz.core.trace import Op, Phase, Save, Trace, Value, once_per_trace

ByOp: TypeAlias = dict[int, list[int]]
"""Value ids by the index of the op at which something happens to them; ops where nothing does are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When values come, are saved, are used and go in the unplanned step."""

    births: ByOp
    """-1 for what was there before."""
    freed: ByOp
    packs: ByOp
    """By the op of the first save."""
    uses: ByOp
    """By each op before which a save is unpacked."""
    first_use: dict[int, int]
    last_use: dict[int, int]


@once_per_trace
def schedule(trace: Trace) -> Schedule:
    """The trace's schedule."""
    births, freed = _by_op(trace.values)
    packs: ByOp = defaultdict(list)
    uses: ByOp = defaultdict(list)
    first_use: dict[int, int] = {}
    last_use: dict[int, int] = {}
    for value, saves in trace.saves_of.items():
        packs[min(save.packed for save in saves)].append(value)
        unpacked = _unpacked(saves)
        if unpacked:
            first_use[value], last_use[value] = unpacked[0], unpacked[-1]
        for index in unpacked:
            uses[index].append(value)
    return Schedule(births=births, freed=freed, packs=dict(packs), uses=dict(uses), first_use=first_use, last_use=last_use)


def _by_op(values: tuple[Value, ...]) -> tuple[ByOp, ByOp]:
    births: ByOp = defaultdict(list)
    freed: ByOp = defaultdict(list)
    for value in values:
        births[value.born].append(value.id)
        freed[value.freed].append(value.id)
    return dict(births), dict(freed)


def _unpacked(saves: tuple[Save, ...]) -> list[int]:
    return sorted({index for save in saves for index in save.unpacked})


Indices: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The same, as columns.

    ``born``, ``freed`` and ``released`` are of each value, as its ``storage``, numbered from 0 without gaps. ``used_at`` are the ops
    before which the values ``used`` are unpacked, ``packs`` the ops at which one is packed, and ``forward`` those of that phase.
    """

    born: Indices
    freed: Indices
    released: Indices
    storage: Indices
    used: Indices
    used_at: Indices
    packs: Indices
    forward: Indices


@once_per_trace
def moments(trace: Trace) -> Moments:
    """The trace's moments."""
    times, values = schedule(trace), trace.values
    storages = np.array([value.storage for value in values], np.int64)
    return Moments(
        born=np.array([value.born for value in values], np.intp),
        freed=np.array([value.freed for value in values], np.intp),
        released=np.array([value.released for value in values], np.intp),
        storage=np.unique(storages, return_inverse=True)[1],
        used=np.array([value for found in times.uses.values() for value in found], np.intp),
        used_at=np.repeat(np.array(list(times.uses), np.intp), [len(found) for found in times.uses.values()]),
        packs=np.array(list(times.packs), np.intp),
        forward=np.array([op.index for op in trace.ops if op.phase is Phase.FORWARD], np.intp),
    )


@once_per_trace
def backward_starts(trace: Trace) -> dict[str, int]:
    """The first backward op inside each module."""
    starts: dict[str, int] = {}
    for op in trace.ops[trace.end_of_forward :]:
        parts = op.module.split(".") if op.phase is Phase.BACKWARD else []
        for depth in range(1, len(parts) + 1):
            starts.setdefault(".".join(parts[:depth]), op.index)
    return starts


@once_per_trace
def makers(trace: Trace) -> list[Op | None]:
    """The op that can make each value again, if its inputs are there."""
    ops = [None if value.producer is None else trace.ops[value.producer] for value in trace.values]
    return [op if op is not None and op.replayable else None for op in ops]


@once_per_trace
def places(trace: Trace) -> dict[str, dict[int, str]]:
    """The saved values of each place ``module:op#output``: ``call.nth`` by value id."""
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for value in trace.saves_of:
        place, at, calls = trace.values[value].key.rpartition("@")
        if at:
            found[place][value] = calls
    return dict(found)
