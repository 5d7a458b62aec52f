"""How long a new plan and its predicted timeline take: the first for a trace, and those after it, as a slider asks for them."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

import memviz as mv
from benchmarks.findings import Finding, publish
from memviz.core.plan import Plan, Swap
from memviz.core.trace import Trace

TARGET = 0.06
"""Seconds at 10,000 ops, so that a slider has its line within 0.2 s on a slow machine with two cores."""

REPEATS = 15
OPS = 10_000
PART = 0.6
"""Of the unplanned peak: what counts as full."""


def findings() -> Iterator[Finding]:
    """A recurrence unrolled to some 10,000 ops, which has a target; then the workloads as they come."""
    yield from timed(mv.workloads.lstm(length=170), target=TARGET)
    for name in mv.workloads.names():
        yield from timed(mv.workloads.get(name))


def timed(workload: mv.workloads.Workload, *, target: float | None = None) -> Iterator[Finding]:
    """Each mode, at occupancies that differ from call to call."""
    trace = mv.record(workload.build())
    full = int(PART * mv.simulate(trace).peak)
    for mode in ("none", "heuristics"):
        for swaps in (False, True):
            name = f"{workload.title}, {len(trace.ops)} ops, {mode}{' and swap' * swaps}"
            swap = [Swap(limit=full, occupancy=number / REPEATS) if swaps else None for number in range(REPEATS)]
            again, plan = seconds([trace] * REPEATS, mode, swap)
            processor, _ = seconds([trace] * REPEATS, mode, swap, clock=time.process_time)
            first, _ = seconds([replace(trace) for _ in range(REPEATS)], mode, swap)
            yield Finding(
                question=f"seconds of plan and simulate: {name}",
                measured=median(again),
                target=target,
                details={
                    "ops": len(trace.ops),
                    "values": len(trace.values),
                    "saves": len(trace.saves),
                    "rules": len(plan.rules),
                    "seconds_per_10000_ops": median(again) * OPS / len(trace.ops),
                    "seconds_at_least": min(again),
                    "seconds_at_most": max(again),
                    "processor_seconds": median(processor),
                    "seconds_of_the_first_for_a_trace": median(first),
                    "repeats": REPEATS,
                },
            )


def seconds(
    traces: list[Trace], mode: str, swaps: list[Swap | None], clock: Callable[[], float] = time.perf_counter
) -> tuple[list[float], Plan]:
    """Of each trace and swap, those that its plan and timeline took together; and the last plan."""
    plan = mv.plan(traces[0], recompute=mode)
    taken = []
    for trace, swap in zip(traces, swaps, strict=True):
        start = clock()
        plan = mv.plan(trace, recompute=mode, swap=swap)
        mv.simulate(trace, plan)
        taken.append(clock() - start)
    return taken, plan


if __name__ == "__main__":
    publish("planning", findings())
