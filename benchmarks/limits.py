"""Whether a limit is real, and whether swapping makes a step fit under it: an LSTM under 60% of its unplanned peak."""

from collections.abc import Iterator

import memviz as mv
from benchmarks.findings import Finding, publish
from memviz.core.failure import OutOfMemoryError
from memviz.core.run import Agreement
from memviz.pytorch.step import TrainStep, as_step

PART = 0.6


def findings() -> Iterator[Finding]:
    """Failing without a plan, then fitting with one."""
    step = as_step(mv.workloads.lstm())
    peak = mv.run(step, repeats=0).peak
    limit = int(PART * peak)
    report = refusal(step, limit)
    yield Finding(
        question=f"LSTM steps without a plan that {PART:.0%} of their peak do not stop",
        measured=float(report is None),
        target=0,
        details={"peak_bytes": peak, "limit_bytes": limit, "report": report},
    )
    swapped = mv.run(step, mv.Plan(swap=mv.Swap(occupancy=0.7)), limit=limit, repeats=0)
    yield Finding(
        question=f"peak of the LSTM with swapping under {PART:.0%} / without a plan",
        measured=swapped.peak / peak,
        target=PART,
        details={"peak_bytes": swapped.peak, "limit_bytes": limit, "swapped_out_bytes": swapped.swapped_out},
    )
    yield Finding(
        question="results of that step that are not bit-identical to the unplanned step's",
        measured=float(swapped.gradients.agreement is not Agreement.EXACT),
        target=0,
        details={"gradients": swapped.gradients.agreement.value, "worst": swapped.gradients.worst},
    )


def refusal(step: TrainStep, limit: int) -> str | None:
    """The out-of-memory report of the step without a plan; None if it completes."""
    try:
        mv.run(step, limit=limit, repeats=0)
    except OutOfMemoryError as error:
        return error.failure.message
    return None


if __name__ == "__main__":
    publish("limits", findings())
