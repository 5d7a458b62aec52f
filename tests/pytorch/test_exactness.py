"""Whole training steps under every kind of plan against the same steps in plain torch: the same bits (E5)."""

from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache

import pytest
import torch
from torch import nn

import memviz as mv
from memviz.core.failure import OutOfMemoryError
from memviz.core.run import Agreement
from memviz.core.trace import Trace
from memviz.pytorch.apply import Engine
from memviz.workloads.models import building
from tests.pytorch.exact import Case, differing, trained

SMALL = {
    "cnn": {"blocks": 1, "width": 4, "size": 16, "batch": 4},
    "lstm": {"length": 12, "units": 32, "batch": 8, "layers": 2},
    "revnet": {"batch": 2},
    "transformer": {"layers": 2, "width": 16, "heads": 2, "length": 8, "batch": 4},
}
MODELS = (*SMALL, "gpt2", "vit")
PLANS = ("keep", "heuristics", "recompute everything", "swap everything", "swap by rule", "swap under a limit", "mix")
SWAP_ALL = mv.Swap(min_bytes=0, occupancy=0.0)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small ops take longer on several threads, much longer where others use the machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@cache
def case(name: str) -> Case:
    if name not in SMALL:
        return transformers_case(name)
    workload = mv.workloads.get(name, device="cpu", **SMALL[name])
    made = building.parts(workload)
    return Case(model=lambda: building.parts(workload).model, inputs=made.inputs, loss=lambda output: made.loss(output, made.targets))


def transformers_case(name: str) -> Case:
    """A tiny model of the package ``transformers``, unchanged, in training mode with its dropout."""
    pytest.importorskip("transformers")
    from benchmarks import transformers_models

    small = {"gpt2": {"layers": 2, "width": 16, "heads": 2, "length": 8}, "vit": {"layers": 2, "width": 16, "heads": 2, "size": 32}}[name]
    step = getattr(transformers_models, name)(batch=2, **small)
    assert any(isinstance(part, nn.Dropout) and part.p > 0 and part.training for part in step.model.modules())
    return Case(model=lambda: getattr(transformers_models, name)(batch=2, **small).model, inputs=step.inputs, loss=step.loss_fn)


def step_of(name: str) -> mv.TrainStep:
    torch.manual_seed(11)
    model = case(name).model()
    return mv.TrainStep(model, case(name).inputs, case(name).loss, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))


@cache
def trace_of(name: str) -> Trace:
    return mv.record(step_of(name))


@cache
def plain(name: str) -> dict[str, torch.Tensor]:
    return trained(case(name), lambda _model: nullcontext())


def plan_of(name: str, kind: str) -> mv.Plan:
    peak = mv.simulate(trace_of(name)).peak
    full = mv.Swap(min_bytes=0, limit=int(0.6 * peak), occupancy=0.5)
    return {
        "keep": lambda: mv.Plan(rules={"*": "keep"}),
        "heuristics": lambda: mv.plan(trace_of(name), recompute="heuristics"),
        "recompute everything": lambda: mv.Plan(rules={"*": "recompute"}),
        "swap everything": lambda: mv.Plan(swap=SWAP_ALL),
        "swap by rule": lambda: mv.Plan(rules={"*": "swap"}, swap=mv.Swap(min_bytes=0)),
        "swap under a limit": lambda: mv.Plan(swap=full),
        "mix": lambda: mv.plan(trace_of(name), recompute="heuristics", swap=SWAP_ALL),
    }[kind]()


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("name", MODELS)
def test_the_steps_leave_the_same_bits(name: str, kind: str) -> None:
    plan, engines = plan_of(name, kind), []

    def applied(model: nn.Module) -> Engine:
        engines.append(mv.apply(plan, model))
        return engines[-1]

    got = trained(case(name), applied)
    assert len(got) > 10
    assert differing(plain(name), got) == []
    assert all(acted(engine, kind) for engine in engines)


def acted(engine: Engine, kind: str) -> bool:
    """Whether the plan did what it is named for: keeping everything is exact too."""
    recomputes = kind in ("heuristics", "recompute everything", "mix")
    swaps = kind.startswith("swap") or kind == "mix"
    swapped = engine.swapper is not None and engine.swapper.swapped_out > 0 and engine.swapper.swapped_in > 0
    return (engine.tally.ops > 0) == recomputes and swapped == swaps


@pytest.mark.parametrize("name", MODELS)
def test_a_run_says_so(name: str) -> None:
    run = mv.run(step_of(name), plan_of(name, "mix"), repeats=0)
    assert run.gradients.agreement is Agreement.EXACT
    assert run.recomputed_ops > 0
    assert run.swapped_out > 0


def test_under_a_real_limit_only_swapping_completes() -> None:
    step = building.build(mv.workloads.lstm(length=60, units=32, batch=16, device="cpu"))
    limit = int(0.6 * mv.run(step, repeats=0).peak)
    with pytest.raises(OutOfMemoryError, match=r"cells\.0"):
        mv.run(step, limit=limit, repeats=0)
    swapped = mv.run(step, mv.Plan(swap=mv.Swap(occupancy=0.7)), limit=limit, repeats=0)
    assert swapped.peak <= limit
    assert swapped.swapped_out > 0
    assert swapped.gradients.agreement is Agreement.EXACT


def test_the_comparison_sees_one_bit() -> None:
    want = plain("cnn")
    got = {name: tensor.clone() for name, tensor in want.items()}
    name = next(name for name in got if name.startswith("1 gradient"))
    flat = got[name].view(-1)
    flat[0] = torch.nextafter(flat[0], torch.tensor(float("inf")))
    assert differing(want, got) == [name]
