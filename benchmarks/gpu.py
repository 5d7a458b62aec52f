"""What holds on a CPU, on a CUDA device: bits, limits, peaks against the allocator's own count, swaps over a side stream, and time.

It needs torch, numpy, networkx and scipy, and no widgets: ``make gpu-check`` runs it with whatever Python the machine has.
"""

import sys
from collections.abc import Iterator

import torch

import memviz as mv
from benchmarks.findings import Finding, publish
from memviz.core.failure import OutOfMemoryError
from memviz.core.plan import Plan
from memviz.core.run import Agreement, Run
from memviz.core.trace import Trace
from memviz.pytorch.step import TrainStep, as_step
from memviz.workloads import Workload

PART = 0.6
"""Of the unplanned peak: the limit that swapping has to fit under."""


def workloads(device: str) -> tuple[Workload, ...]:
    """Large enough for a GPU to be busy."""
    return (
        mv.workloads.revnet(config="cifar_38", device=device),
        mv.workloads.lstm(length=1000, units=1024, batch=64, device=device),
        mv.workloads.cnn(batch=256, width=64, device=device),
        mv.workloads.transformer(batch=32, length=512, width=512, device=device),
    )


def findings(made: tuple[Workload, ...]) -> Iterator[Finding]:
    """Every question about every workload; what raises is a finding too, and the next question is asked all the same."""
    for workload in made:
        step = as_step(workload)
        trace = mv.record(step)
        base = mv.run(step)
        yield from compared(f"{workload.title}, no plan", trace, base, base)
        yield from allocator(workload.title, step, base)
        yield from limited(workload.title, step, int(PART * base.peak))
        for plan in plans(trace, base.peak):
            try:
                run = mv.run(step, plan)
            except Exception as error:  # noqa: BLE001  # a report that ends at the first fault would hide the others
                yield Finding(
                    question=f"runs that raise: {workload.title}, {plan.label}", measured=1, target=0, details={"error": repr(error)}
                )
            else:
                yield from compared(f"{workload.title}, {plan.label}", trace, base, run)


def plans(trace: Trace, peak: int) -> Iterator[Plan]:
    """Each kind."""
    yield mv.plan(trace, recompute="heuristics")
    yield Plan(rules={"*": "recompute"}, label="recompute everything")  # type: ignore[arg-type]
    yield Plan(swap=mv.Swap(occupancy=0.0), label="swap everything")
    yield Plan(swap=mv.Swap(limit=int(PART * peak)), label=f"swap, {PART:.0%}")
    yield mv.plan(trace, recompute="heuristics", swap=mv.Swap(limit=int(PART * peak)), label=f"heuristics and swap, {PART:.0%}")


def compared(name: str, trace: Trace, base: Run, run: Run) -> Iterator[Finding]:
    """Bits, prediction, peak and time of one run."""
    yield Finding(
        question=f"results that are not bit-identical: {name}",
        measured=float(run.gradients.agreement is not Agreement.EXACT),
        target=0,
        details={"gradients": run.gradients.agreement.value, "worst": run.gradients.worst, "difference": run.gradients.max_difference},
    )
    predicted = mv.simulate(trace, run.plan).peak
    yield Finding(
        question=f"error of the predicted peak: {name}",
        measured=abs(predicted - run.peak) / run.peak,
        target=0.05,
        details={"predicted_bytes": predicted, "measured_bytes": run.peak, "activations_bytes": run.activations},
    )
    if run is not base:
        yield Finding(question=f"peak / no plan: {name}", measured=run.peak / base.peak)
        details = {"seconds": run.step_seconds, "stall": run.stall_seconds, "recompute": run.recompute_seconds}
        yield Finding(question=f"time / no plan: {name}", measured=run.seconds / base.seconds, details=details)


def allocator(title: str, step: TrainStep, base: Run) -> Iterator[Finding]:
    """Our count of live bytes against the allocator's, which rounds up and sees the workspaces of single ops."""
    if step.device.type != "cuda":
        return
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    theirs = torch.cuda.max_memory_allocated()
    details = {"ours": base.peak, "allocator": theirs}
    yield Finding(question=f"allocator's peak / ours: {title}", measured=theirs / base.peak, details=details)


def limited(title: str, step: TrainStep, limit: int) -> Iterator[Finding]:
    """Without a plan the step stops at the limit, with the report."""
    try:
        mv.run(step, limit=limit, repeats=0)
        stopped = False
    except OutOfMemoryError:
        stopped = True
    yield Finding(question=f"steps under {PART:.0%} without a plan that do not stop: {title}", measured=float(not stopped), target=0)


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("this machine's torch finds no CUDA device: nothing was checked, and nothing was written")
    publish("gpu", findings(workloads("cuda")))
