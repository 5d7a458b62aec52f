"""How far predicted peaks are from measured ones: for every run of the demo, and for every workload under every kind of plan."""

from collections.abc import Iterator

import memviz as mv
from benchmarks.findings import Finding, publish
from memviz import demo
from memviz.core.plan import Plan
from memviz.core.run import Run
from memviz.core.trace import Trace
from memviz.pytorch.step import TrainStep, as_step

PART = 0.6
"""Of the unplanned peak: what counts as full where a plan swaps."""


def findings() -> Iterator[Finding]:
    """The demo's runs, which have a target, then the others."""
    for quick in (True, False):
        for line in demo.stepped(quick=quick)[1]:
            if isinstance(line.result, Run) and line.predicted is not None:
                name = f"demo{' --quick' * quick}, {line.title}, {line.label}"
                yield error(name, predicted=line.predicted, measured=line.result.peak, target=0.05)
    for workload in (mv.workloads.get(name) for name in mv.workloads.names()):
        step = as_step(workload)
        trace = mv.record(step)
        for plan in plans(trace, step):
            yield error(
                f"{workload.title}, {plan.label}",
                predicted=mv.simulate(trace, plan).peak,
                measured=mv.run(step, plan, repeats=0).peak,
            )


def plans(trace: Trace, step: TrainStep) -> Iterator[Plan]:
    """Each kind."""
    swap = mv.Swap(limit=int(PART * mv.run(step, repeats=0).peak))
    yield mv.Plan(label="no plan")
    yield mv.plan(trace, recompute="heuristics")
    yield mv.Plan(rules={"*": "recompute"}, label="recompute everything")
    yield mv.Plan(swap=mv.Swap(occupancy=0.0), label="swap everything")
    yield mv.Plan(swap=swap, label=f"swap, {PART:.0%} limit")
    yield mv.plan(trace, recompute="heuristics", swap=swap, label=f"heuristics and swap, {PART:.0%} limit")


def error(name: str, *, predicted: int, measured: int, target: float | None = None) -> Finding:
    """The distance of prediction from measurement as a part of the latter."""
    return Finding(
        question=f"error of the predicted peak: {name}",
        measured=abs(predicted - measured) / measured,
        target=target,
        details={"peak_bytes": {"predicted": predicted, "measured": measured}},
    )


if __name__ == "__main__":
    publish("predictions", findings())
