"""Traces of real steps against what is known of them, and predictions against measurements."""

import gc

import pytest
import torch
from torch import nn

import memviz as mv
from memviz.core.trace import Category, Phase


def residual() -> mv.TrainStep:
    torch.manual_seed(0)
    block = [nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    model = nn.Sequential(
        *block, nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 256, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return mv.TrainStep(model, torch.randn(16, 8, 16, 16), lambda output: output.square().mean(), optimizer)


def test_what_a_chain_does() -> None:
    weight = nn.Linear(100, 100, bias=False)
    trace = mv.record(mv.TrainStep(weight, torch.ones(10, 100), lambda output: output.sigmoid().sum()))
    names = [op.name for op in trace.ops if op.phase is Phase.FORWARD]
    assert names[:4] == ["aten::t", "aten::mm", "aten::sigmoid", "aten::sum"]
    (saved,) = [trace.values[save.value] for save in trace.saves if trace.values[save.value].category is Category.ACTIVATION]
    assert (saved.key, saved.nbytes) == ("(step):aten::sigmoid#0@0.0", 4000)
    assert trace.ops[1].module == ""
    backward = next(op for op in trace.ops if op.name == "aten::sigmoid_backward")
    assert trace.ops[backward.forward].name == "aten::sigmoid"
    assert trace.ops[2].source.startswith("test_record.py:")


@pytest.mark.parametrize("mode", ["none", "heuristics"])
def test_predicted_peak_is_near_the_measured_one(mode: str) -> None:
    step = residual()
    trace = mv.record(step)
    plan = mv.plan(trace, recompute=mode)
    gc.disable()  # what a recompute leaves for the garbage collector is a leak as long as the step runs
    try:
        run = mv.run(step, plan, repeats=1)
    finally:
        gc.enable()
    assert run.gradients.agreement == "exact"
    assert mv.simulate(trace, plan).peak == pytest.approx(run.peak, rel=0.05)


def test_heuristics_lower_what_waits() -> None:
    step = residual()
    plan = mv.plan(mv.record(step), recompute="heuristics")
    assert mv.run(step, plan, repeats=1).activations < 0.8 * mv.run(step, repeats=1).activations
