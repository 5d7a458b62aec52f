"""Runs and timelines whose answers can be read off."""

import numpy as np

from memviz.core.plan import Plan
from memviz.core.run import Agreement, Gradients, Run
from memviz.core.timeline import Holder, Timeline, Transfer
from memviz.core.trace import Category, Phase

MIB = 2**20
PARAMETERS = (1, 1, 1, 1, 1)
ACTIVATIONS = (2, 5, 9, 4, 0)
TOTAL = (3, 6, 10, 5, 1)
"""MiB after each of five ops: the peak is 10, at the third."""
SECONDS = (0.5, 1.0, 1.5, 3.0, 4.0)


def holder(name: str, nbytes: int) -> Holder:
    return Holder(
        key=f"{name}:aten::relu#0@0.0", module=name, op="aten::relu", source="net.py:7", nbytes=nbytes, category=Category.ACTIVATION
    )


def timeline(*, predicted: bool = False, factor: int = MIB, transfers: tuple[Transfer, ...] = ()) -> Timeline:
    return Timeline(
        predicted=predicted,
        device="cpu",
        seconds=np.array(SECONDS),
        nbytes={
            Category.ACTIVATION: np.array(ACTIVATIONS, np.int64) * factor,
            Category.PARAMETER: np.array(PARAMETERS, np.int64) * factor,
            Category.GRADIENT: np.zeros(5, np.int64),
        },
        phases=(Phase.FORWARD, Phase.FORWARD, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER),
        modules=("a", "b", "c", "c", ""),
        holders=(holder("a", 2 * factor), holder("b", 5 * factor), holder("c", 1 * factor)),
        transfers=transfers,
    )


def run(
    plan: Plan | None = None,
    *,
    title: str = "net",
    seconds: float = 2.0,
    factor: int = MIB,
    limit: int | None = None,
    gradients: Gradients | None = None,
    measured: Timeline | None = None,
) -> Run:
    return Run(
        title=title,
        plan=plan or Plan(),
        timeline=measured or timeline(factor=factor),
        step_seconds=(seconds,),
        loss=0.25,
        gradients=gradients or Gradients(agreement=Agreement.EXACT),
        limit=limit,
    )
