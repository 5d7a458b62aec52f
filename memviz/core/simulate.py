"""What a plan would do to a recorded step: the predicted timeline."""

from collections import defaultdict

import numpy as np

from memviz.core.derive import chain, held_anyway
from memviz.core.keys import Key
from memviz.core.ledger import Ledger, summed_holders
from memviz.core.limits import check_limit, resident_bytes
from memviz.core.machine import Machine, machine_for
from memviz.core.plan import Action, Order, Plan
from memviz.core.timeline import Timeline, Transfer
from memviz.core.trace import PERSISTENT, Op, Phase, Trace, Value, check_trace
from memviz.core.units import Bytes


def simulate(trace: Trace, plan: Plan | None = None, machine: Machine | None = None, *, limit: Bytes | None = None) -> Timeline:
    """Predict the step's memory and time under a plan.

    Args:
        trace: The unplanned step.
        plan: None keeps everything.
        machine: Speeds and memory; None for the preset of the trace's device.
        limit: Bytes (or text) that count as full for swapping, where the plan's ``swap`` gives none.

    Returns:
        A timeline with one entry for each op and for each op that runs again; ``recomputed`` has the latter's indices.
        Seconds are scaled so that the unplanned step takes ``trace.seconds``, if that is known.

    Raises:
        ValueError: For something else than a trace, a plan or a machine, or a limit below what parameters and buffers need.

    Known limits: fragmentation and an op's inner workspace are not modelled; a swapped value leaves at once.
    """
    check_trace(trace, "simulate")
    if not isinstance(plan, Plan | None):
        msg = f"plan is a Plan, as mv.plan(trace, recompute='heuristics') returns, or None, not {plan!r}"
        raise ValueError(msg)
    if not isinstance(machine, Machine | None):
        msg = f"machine is a Machine, as memviz.core.machine.machine_for('H200') returns, or None, not {machine!r}"
        raise ValueError(msg)
    full = check_limit(limit, resident_bytes(trace))
    if plan is not None and plan.swap is not None:
        check_limit(plan.swap.limit, resident_bytes(trace), name="swap's limit")
    return _Step(trace, plan or Plan(), machine or machine_for(trace.device), full).walk()


def actions_of(trace: Trace, plan: Plan) -> dict[int, Action]:
    """What really happens to each saved value: what can't be recomputed or rebuilt is kept, as the engine does (E5)."""
    wanted = {value: plan.action(Key.parse(trace.values[value].key)) for value in trace.saves_of if _plannable(trace.values[value])}
    anyway = held_anyway(trace)
    makeable: set[int] = set(anyway)
    for value in trace.values:
        kept = value.id in trace.saves_of and wanted.get(value.id) is not Action.RECOMPUTE
        op = trace.ops[value.producer] if value.producer is not None else None
        if kept or (op is not None and op.replayable and all(read in makeable for read in op.inputs)):
            makeable.add(value.id)
        elif wanted.get(value.id) is Action.RECOMPUTE:
            wanted[value.id] = Action.KEEP
            makeable.add(value.id)
    for value_id, action in wanted.items():
        if action is Action.REVERSE and _block_part(trace, trace.values[value_id]) is None:
            wanted[value_id] = Action.KEEP
    return wanted


def _plannable(value: Value) -> bool:
    return value.category not in PERSISTENT and value.producer is not None and "@" in value.key


def _block_part(trace: Trace, value: Value) -> str | None:
    """The f or g of the innermost reversible block that the value was made in; the block itself for what is between; or None."""
    module = value.key.partition(":")[0]
    blocks = [m.path for m in trace.modules if m.reversible and (module == m.path or module.startswith(f"{m.path}.") or not m.path)]
    if not blocks:
        return None
    block = max(blocks, key=len)
    inner = module[len(block) :].lstrip(".").partition(".")[0]
    return ".".join(filter(None, (block, inner)))


class _Step:
    """One walk through the ops. Everything that is scheduled for an op is listed under its index beforehand."""

    def __init__(self, trace: Trace, plan: Plan, machine: Machine, limit: int | None) -> None:
        self.trace, self.swap, self.machine = trace, plan.swap, machine
        self.actions = actions_of(trace, plan)
        self.anyway = held_anyway(trace)
        full = self.swap.limit if self.swap is not None and self.swap.limit is not None else limit or machine.memory
        self.threshold = self.swap.occupancy * int(full) if self.swap is not None else float("inf")
        recorded = sum(op.seconds for op in trace.ops)
        self.scale = trace.seconds / recorded if trace.seconds > 0 and recorded > 0 else 1.0
        self.ledger = Ledger(trace)
        self.clock = self.out_free = self.in_free = 0.0
        self.waiting: list[int] = []
        self.out: dict[int, float] = {}
        self.leaving: dict[int, list[int]] = defaultdict(list)
        self.transfers: list[Transfer] = []
        self.rows: list[tuple[float, dict, Op]] = []  # type: ignore[type-arg]
        self.recomputed: list[int] = []
        self.peak, self.peak_changes = -1, 0
        self._schedule()

    def _schedule(self) -> None:
        trace = self.trace
        self.births: dict[int, list[Value]] = defaultdict(list)
        self.ends: dict[int, list[int]] = defaultdict(list)
        self.packs: dict[int, list[int]] = defaultdict(list)
        self.uses: dict[int, list[int]] = defaultdict(list)
        self.rebuilds: dict[int, list[int]] = defaultdict(list)
        self.first_use: dict[int, int] = {}
        self.last_use: dict[int, int] = {}
        for value, saves in trace.saves_of.items():
            unpacked = sorted({index for save in saves for index in save.unpacked})
            self.packs[min(save.packed for save in saves)].append(value)
            if unpacked:
                self.first_use[value], self.last_use[value] = unpacked[0], unpacked[-1]
            for index in unpacked:
                self.uses[index].append(value)
        backward_start: dict[str, int] = {}
        for op in trace.ops[trace.end_of_forward :]:
            parts = op.module.split(".") if op.phase is Phase.BACKWARD else []
            for depth in range(1, len(parts) + 1):
                backward_start.setdefault(".".join(parts[:depth]), op.index)
        reversible = {m.path for m in trace.modules if m.reversible}
        for value in trace.values:
            self.births[value.born].append(value)
            action = self.actions.get(value.id, Action.KEEP)
            dropped = action in (Action.RECOMPUTE, Action.REVERSE)
            self.ends[value.freed].append(value.id)
            if not dropped:
                continue
            self.ends[value.released].append(value.id)
            if value.id in self.last_use:
                self.ends[max(value.freed, self.last_use[value.id] + 1)].append(value.id)
            if action is Action.REVERSE and value.id in self.first_use:
                part = _block_part(trace, value) or ""
                start = self.first_use[value.id] if part in reversible else backward_start.get(part, self.first_use[value.id])
                self.rebuilds[min(start, self.first_use[value.id])].append(value.id)

    def walk(self) -> Timeline:
        for value in self.births[-1]:
            self.ledger.add(value)
        for op in self.trace.ops:
            self._end(op.index)
            self._rebuild(op.index)
            for value in self.uses[op.index]:
                self._unpack(value)
            for value in self.births[op.index]:
                self.ledger.add(value)
            for value in self.packs[op.index]:
                self._pack(value, op.index)
            self._row(op)
        return self._timeline()

    def _end(self, index: int) -> None:
        for value in self.leaving.pop(index, ()):
            if value in self.out:
                self.ledger.remove(value)
        for value in self.ends[index]:
            if self.last_use.get(value, -1) >= index > self.first_use.get(value, index) and value in self.ledger and self._dropped(value):
                continue
            self.ledger.remove(value)

    def _dropped(self, value: int) -> bool:
        return self.actions.get(value) in (Action.RECOMPUTE, Action.REVERSE)

    def _rebuild(self, index: int) -> None:
        again = [self.trace.values[value] for value in self.rebuilds[index] if value not in self.ledger]
        for op in sorted({value.producer for value in again if value.producer is not None}):
            for value in again:
                if value.producer == op:
                    self.ledger.add(value, again=True)
            self._row(self.trace.ops[op], again=True)

    def _held(self, value: int) -> bool:
        if value in self.anyway:
            return True
        return value in self.trace.saves_of and (value in self.ledger or value in self.out)

    def _unpack(self, value: int) -> None:
        if value in self.out:
            self._fetch(value, needed=True)
            self._prefetch()
        elif value not in self.ledger and self.actions.get(value) is Action.RECOMPUTE:
            self._recompute(value)
        elif value not in self.ledger and self._dropped(value):
            self.ledger.add(self.trace.values[value], again=True)
        if value in self.waiting:
            self.waiting.remove(value)

    def _recompute(self, target: int) -> None:
        producer = self.trace.values[target].producer
        # Where a kept value that the recipe reads is gone by now, the last op stands in for the chain.
        ops = chain(self.trace, target, self._held) or ((producer,) if producer is not None else ())
        reader = {value: op for op in ops for value in self.trace.ops[op].inputs}
        transient: set[int] = set()
        for index in ops:
            op = self.trace.ops[index]
            overwritten = [v for v in op.mutates if v in transient and reader[v] == index]
            for value in overwritten:
                self.ledger.remove(value)
            for value in op.outputs:
                if value not in self.ledger:
                    self.ledger.add(self.trace.values[value], again=True)
                    waits = self._dropped(value) and value in self.last_use
                    if not waits:
                        transient.add(value)
            self._row(op, again=True)
            for value in [v for v in transient if reader.get(v, -1) <= index and v != target]:
                self.ledger.remove(value)
                transient.discard(value)

    def _pack(self, value: int, index: int) -> None:
        action = self.actions.get(value)
        if action is Action.SWAP:
            self._send(value, index)
        elif action is Action.KEEP and self.swap is not None and self.trace.values[value].nbytes >= int(self.swap.min_bytes):
            self.waiting.append(value)
        while self.waiting and self.ledger.live > self.threshold:
            self._send(self._next(), index)

    def _next(self) -> int:
        order = self.swap.order if self.swap is not None else Order.OLDEST
        if order is Order.LARGEST:
            largest = max(self.waiting, key=lambda value: self.trace.values[value].nbytes)
            self.waiting.remove(largest)
            return largest
        return self.waiting.pop(0 if order is Order.OLDEST else -1)

    def _send(self, value_id: int, index: int) -> None:
        value = self.trace.values[value_id]
        if value_id not in self.ledger:
            return
        start = max(self.clock, self.out_free)
        self.out_free = start + value.nbytes / self.machine.swap_out
        self.out[value_id] = self.out_free
        self.transfers.append(Transfer(key=value.key, nbytes=value.nbytes, out=True, start=start, end=self.out_free))
        if value.released <= index:
            self.ledger.remove(value_id)
        else:
            self.leaving[value.released].append(value_id)

    def _fetch(self, value_id: int, *, needed: bool) -> None:
        value = self.trace.values[value_id]
        left = self.out.pop(value_id)
        if value_id not in self.ledger:
            start = max(self.clock, self.in_free, left)
            self.in_free = start + value.nbytes / self.machine.swap_in
            self.transfers.append(Transfer(key=value.key, nbytes=value.nbytes, out=False, start=start, end=self.in_free))
            self.ledger.add(value, again=True)
        if needed:
            self.clock = max(self.clock, self.in_free)

    def _prefetch(self) -> None:
        ahead = self.swap.prefetch if self.swap is not None else 0
        for value in list(reversed(self.out))[:ahead]:
            if value in self.first_use and self.ledger.live + self.trace.values[value].nbytes <= self.threshold:
                self._fetch(value, needed=False)

    def _row(self, op: Op, *, again: bool = False) -> None:
        self.clock += op.seconds * self.scale
        if again:
            self.recomputed.append(len(self.rows))
        phase = Phase.BACKWARD if again else op.phase
        self.rows.append((self.clock, dict(self.ledger.nbytes), phase, op.module))  # type: ignore[arg-type]
        if self.ledger.live > self.peak:
            self.peak, self.peak_changes = self.ledger.live, len(self.ledger.history)

    def _timeline(self) -> Timeline:
        rows = self.rows
        columns = {kind: np.array([row[1][kind] for row in rows], np.int64) for kind in self.ledger.nbytes}
        return Timeline(
            predicted=True,
            device=self.trace.device,
            seconds=np.array([row[0] for row in rows], np.float64),
            nbytes={kind: column for kind, column in columns.items() if column.any()},
            phases=tuple(row[2] for row in rows),  # type: ignore[misc]
            modules=tuple(row[3] for row in rows),  # type: ignore[misc]
            holders=summed_holders(self.trace, self.ledger.holders(self.peak_changes)),
            transfers=tuple(self.transfers),
            recomputed=tuple(self.recomputed),
        )
