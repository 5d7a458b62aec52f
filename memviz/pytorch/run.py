"""A plan, stepped for real: memory from one metered step, time from plain ones, gradients against the unplanned step."""

from __future__ import annotations

import datetime
import platform
import time
import warnings
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from memviz.core.events import Event, Progress
from memviz.core.failure import Cancelled
from memviz.core.plan import Action, Plan
from memviz.core.run import Agreement, Gradients, Run
from memviz.core.units import Bytes, parse_bytes
from memviz.pytorch.apply import Engine, reversal_key
from memviz.pytorch.compat import device_memory
from memviz.pytorch.meter import Meter, ignore
from memviz.pytorch.recipes import tensors_in
from memviz.pytorch.reversible import ReversibleSequence
from memviz.pytorch.step import TrainStep, as_step, restored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDING = 1e-3
"""Relative difference up to which results count as close."""


def run(
    step: Any,
    plan: Plan | None = None,
    *,
    limit: Bytes | None = None,
    repeats: int = 3,
    on_event: Callable[[Event], None] = ignore,
    cancelled: Callable[[], bool] = lambda: False,
) -> Run:
    """Step for real under a plan, and give everything back as it was (E10).

    Args:
        step: A TrainStep, a callable that does one whole step, or a workload.
        plan: None for the unplanned step.
        limit: Bytes (or text) that the metered step must stay within (E9).
        repeats: Plain steps to time, after one that warms up.
        on_event: Told of progress and, while the metered step runs, of memory.
        cancelled: Asked between ops of the metered step and between steps.

    Returns:
        The run: peak and activations in bytes, seconds, and gradients against the unplanned step.

    Raises:
        OutOfMemoryError: If the limit is crossed; ``failure`` says where and who holds the rest.
        ValueError: If the step or limit can't be, or no gradient comes out.
    """
    step, plan = as_step(step), Plan() if plan is None else plan
    if not isinstance(plan, Plan):
        msg = f"plan is a mv.Plan, as mv.plan(trace) or mv.Plan(rules={{'blocks.*': 'recompute'}}) makes one, or None, not {plan!r}"
        raise ValueError(msg)
    limit = None if limit is None else parse_bytes(limit, name="limit")
    resident = sum(tensor.untyped_storage().nbytes() for tensor in [*step.parameters().values(), *step.buffers().values()])
    if limit is not None and limit < resident:
        msg = f"limit is {limit} bytes, but parameters and buffers alone need {resident}"
        raise ValueError(msg)
    total = repeats + 3

    def tell(stage: str, number: int) -> None:
        if cancelled():
            raise Cancelled
        on_event(Progress(stage=stage, fraction=number / total))

    tell("the unplanned step, to compare with", 0)
    want = _wanted(step)
    tell("metered step", 1)
    with restored(step), _capped(step.device, limit):
        meter = Meter(step, limit=limit, on_event=on_event, cancelled=cancelled)
        engine = Engine(plan, step.modules, limit=limit, live=lambda: meter.live, on_save=meter.saved)
        meter.tally = engine.tally
        with meter:
            loss = step(engine)
        got = _outcome(step, loss)
    _warn_of_idle_rules(step, plan, meter)
    swapper = engine.swapper
    timeline = meter.timeline(device_name(step.device), swapper.transfers if swapper else ())
    seconds = []
    for number in range(repeats + 1):
        tell(f"timed step {number} of {repeats}" if number else "warm-up step", number + 2)
        seconds.append(_result(step, plan, limit)[1])
    return Run(
        title=step.title,
        plan=plan,
        timeline=timeline,
        step_seconds=tuple(seconds[1:]),
        loss=float(loss),
        gradients=compare(want, got) if isinstance(want, dict) else want,
        swapped_out=swapper.swapped_out if swapper else 0,
        swapped_in=swapper.swapped_in if swapper else 0,
        stall_seconds=swapper.stall_seconds if swapper else 0.0,
        recomputed_ops=engine.tally.ops,
        recompute_seconds=engine.tally.seconds,
        limit=limit,
        environment=environment(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def _warn_of_idle_rules(step: TrainStep, plan: Plan, meter: Meter) -> None:
    """A rule that changes nothing is no error, since a plan may be for many models; but whoever wrote it wants to know."""
    for rule in plan.unmatched(meter.places):
        warnings.warn(f"the rule {rule.pattern!r} matched nothing in {step.title}; '*' matches everything", RuntimeWarning, stacklevel=3)
    sequences = {path: reversal_key(path) for path, module in meter.scope.kinds.items() if isinstance(module, ReversibleSequence)}
    for rule in plan.rules:
        if rule.action is Action.REVERSE and not any(map(rule.matches, sequences.values())):
            there = f"such as {next(iter(sequences))!r}" if sequences else f"and there is none in {step.title}"
            message = f"the rule {rule.pattern!r} reverses nothing: only a whole ReversibleSequence can be reversed, {there}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)


def _result(step: TrainStep, plan: Plan | None, limit: int | None = None) -> tuple[dict[str, torch.Tensor], float]:
    """One plain step's outcome and its seconds."""
    with restored(step):
        resident = sum(t.untyped_storage().nbytes() for o in step.optimizers for t in tensors_in(dict(o.state)))
        context: AbstractContextManager[object] = (
            nullcontext() if plan is None or plan.keeps_everything else Engine(plan, step.modules, limit=limit, resident=resident)
        )
        start = time.perf_counter()
        loss = step(context)
        _finish(step.device)
        seconds = time.perf_counter() - start
        return (_outcome(step, loss) if plan is None else {}), seconds


def _wanted(step: TrainStep) -> dict[str, torch.Tensor] | Gradients:
    """The unplanned step's outcome; why there is none where the device can't hold it."""
    try:
        return _result(step, None)[0]
    except torch.OutOfMemoryError:
        return Gradients(agreement=Agreement.UNCHECKED, reason=f"the unplanned step does not fit on {device_name(step.device)}")


def timed_step(step: TrainStep) -> float:
    """Seconds of one plain step; everything is given back as it was."""
    return _result(step, None)[1]


@contextmanager
def _capped(device: torch.device, limit: int | None) -> Iterator[None]:
    """On CUDA, keep the allocator itself within the limit (E9)."""
    if device.type != "cuda" or limit is None:
        yield
        return
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, limit / device_memory(device)), device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _outcome(step: TrainStep, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    parameters = step.parameters()
    gradients = {f"gradient of {name}": p.grad.detach().clone() for name, p in parameters.items() if p.grad is not None}
    if not gradients:
        msg = "no parameter has a gradient after the step; call backward in it"
        raise ValueError(msg)
    after = {f"{name} after the step": tensor.detach().clone() for name, tensor in (parameters | step.buffers()).items()}
    return {"loss": loss.detach().clone(), **gradients, **after}


def compare(want: dict[str, torch.Tensor], got: dict[str, torch.Tensor]) -> Gradients:
    """How two outcomes agree: bit for bit, within rounding, or not."""
    if want.keys() != got.keys():
        odd = sorted(want.keys() ^ got.keys())[0]
        return Gradients(agreement=Agreement.DIFFERENT, max_difference=float("inf"), worst=odd, reason=f"only one of the steps has {odd}")
    worst, largest = "", 0.0
    for name, tensor in want.items():
        if not torch.equal(tensor, got[name]) and not torch.equal(tensor.nan_to_num(), got[name].nan_to_num()):
            scale = tensor.abs().max().clamp(min=torch.finfo(torch.float32).tiny)
            difference = float((tensor - got[name]).abs().max() / scale)
            if not difference <= largest:
                worst, largest = name, difference
    if not worst:
        return Gradients(agreement=Agreement.EXACT)
    agreement = Agreement.CLOSE if largest <= ROUNDING else Agreement.DIFFERENT
    return Gradients(agreement=agreement, max_difference=largest, worst=worst)


def device_name(device: torch.device) -> str:
    """The device's name for people."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def environment() -> dict[str, str]:
    """Versions and machine."""
    return {"torch": torch.__version__, "python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
