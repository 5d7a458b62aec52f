"""How much less waits for backward at the end of forward with heuristics."""

from collections.abc import Callable, Iterator

import memviz as mv
from benchmarks.findings import Finding, publish
from benchmarks.transformers_models import gpt2, vit
from memviz.pytorch.step import TrainStep, as_step
from memviz.workloads import Workload

STEPS: dict[str, tuple[Callable[[], Workload | TrainStep], float | None]] = {
    "residual CNN": (mv.workloads.cnn, 0.60),
    "transformer, dropout 0.1, GELU": (mv.workloads.transformer, 0.75),
    "GPT-2 of transformers": (gpt2, 0.55),
    "ViT of transformers": (vit, 0.75),
    "LSTM, length 400": (mv.workloads.lstm, None),
    "RevNet, not reversed": (mv.workloads.revnet, None),
}
"""The steps, and the most of the unplanned bytes that may wait."""


def findings() -> Iterator[Finding]:
    """One for each step."""
    for title, (make, target) in STEPS.items():
        yield waiting(title, as_step(make()), target)


def waiting(title: str, step: TrainStep, target: float | None) -> Finding:
    """Bytes that wait under heuristics as a part of what waits without a plan."""
    plain, lean = mv.run(step, repeats=0), mv.run(step, mv.plan(mv.record(step), recompute="heuristics"), repeats=0)
    return Finding(
        question=f"waiting at the end of forward, heuristics / no plan: {title}",
        measured=lean.activations / plain.activations,
        target=target,
        details={
            "waiting_bytes": {"no plan": plain.activations, "heuristics": lean.activations},
            "peak_bytes": {"no plan": plain.peak, "heuristics": lean.peak},
            "gradients": lean.gradients.agreement.value,
        },
    )


if __name__ == "__main__":
    publish("activations", findings())
