"""Each way of asking for what can't be: the message names what was passed and what would do."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import memviz as mv
from memviz.core.machine import machine_for


class Frozen(nn.Linear):
    def __init__(self) -> None:
        super().__init__(4, 1)
        self.requires_grad_(requires_grad=False)


MODEL = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
INPUTS = torch.ones(2, 4)
STEP = mv.TrainStep(MODEL, INPUTS, lambda output: output.sum())
TRACE = mv.record(STEP)
NAN, INFINITE = float("nan"), float("inf")
RESIDENT = (4 * 8 + 8 + 8 + 1) * 4
"""Bytes of MODEL's parameters, by hand."""


def with_loss(loss_fn) -> mv.TrainStep:
    return mv.TrainStep(MODEL, INPUTS, loss_fn)


def no_backward() -> torch.Tensor:
    return MODEL(INPUTS).sum()


def swap(**settings):
    return lambda: mv.Swap(**settings)


def rules(given):
    return lambda: mv.Plan(rules=given)


UNKNOWN_NAMES = [
    (lambda: mv.workloads.get("revnett"), "'revnett'", "did you mean 'revnet'? There are cnn, lstm, revnet, transformer"),
    (lambda: mv.workloads.get(None), "None", "There are cnn, lstm, revnet, transformer"),
    (lambda: mv.workloads.get("lstm", lenght=3), "'lenght'", "did you mean 'length'? There are length, units"),
    (lambda: mv.workloads.revnet(config="cifar38"), "'cifar38'", "one of small, cifar_38"),
    (lambda: mv.workloads.lstm(length=-1), "-1", "length is a whole number at least 1"),
    (lambda: mv.workloads.lstm(length="many"), "'many'", "length is a whole number at least 1"),
    (lambda: mv.workloads.transformer(dropout=NAN), "nan", "dropout is a number at least 0 and at most 0.9"),
    (lambda: mv.workloads.transformer(width=10, heads=3).build(), "width 10", "try width=12"),
    (lambda: mv.workloads.cnn(device="tpu"), "'tpu'", "device is one of auto, cpu, cuda"),
    (lambda: mv.plan(TRACE, recompute="heuristic"), "'heuristic'", "one of none, manual, heuristics; did you mean 'heuristics'?"),
    (lambda: mv.plan(TRACE, recompute=None), "None", "one of none, manual, heuristics"),
    (lambda: mv.plan(TRACE, recompute=["none"]), "['none']", "one of none, manual, heuristics"),
]
PATTERNS = [
    (lambda: mv.plan(TRACE, rules={"blocks.*": "recompute"}), "'blocks.*'", "close are '0', '1', '2'; '*' matches everything"),
    (lambda: mv.plan(TRACE, rules={"1:rellu": "recompute"}), "'1:rellu'", "close are '1:relu'"),
    (lambda: mv.plan(TRACE, recompute="none", rules={"blocks.*": "keep"}), "'blocks.*'", "'*' matches everything"),
    (rules({"*": "recomput"}), "'recomput'", "one of keep, recompute, swap, reverse"),
    (rules({"*": None}), "None", "one of keep, recompute, swap, reverse"),
    (rules({3: "keep"}), "3", "text such as 'blocks.*:relu'"),
    (rules({" ": "keep"}), "' '", "text such as 'blocks.*:relu'"),
    (rules("blocks"), "'blocks'", "a mapping from pattern to action"),
    (rules(3), "3", "a mapping from pattern to action"),
    (lambda: mv.Plan(swap=True), "True", "Swap(occupancy=0.7)"),
]
THRESHOLDS = [
    *[
        (swap(min_bytes=wrong), repr(wrong), "min_bytes is a number of bytes, 0 or more")
        for wrong in (-1, "lots", None, NAN, INFINITE, 1.5)
    ],
    *[(swap(occupancy=wrong), repr(wrong), "from 0 to 1, such as 0.7") for wrong in (-0.1, 70, "70%", None, NAN, True)],
    *[(swap(limit=wrong), repr(wrong), "text such as '6 GiB'") for wrong in (-5, "6 gigs", "-3 GiB", NAN)],
    (swap(limit=0), "limit is 0", "occupancy=0.0"),
    (swap(order="old"), "'old'", "one of oldest, newest, largest"),
    (swap(prefetch=-1), "-1", "0 or more"),
    (swap(target="gpu"), "'gpu'", "one of auto, host, disk"),
    (lambda: mv.plan(TRACE, budget=-6), "-6", "text such as '6 GiB'"),
    (lambda: mv.plan(TRACE, budget="lots"), "'lots'", "text such as '6 GiB'"),
]
LIMITS = [
    (lambda: mv.run(STEP, limit=10), "limit is 10 bytes", f"alone need {RESIDENT}"),
    (lambda: mv.simulate(TRACE, limit=10), "limit is 10 bytes", f"alone need {RESIDENT}"),
    (lambda: mv.simulate(TRACE, mv.Plan(swap=mv.Swap(limit=10))), "swap's limit is 10 bytes", f"alone need {RESIDENT}"),
    (lambda: mv.run(STEP, limit=-10), "-10", "text such as '6 GiB'"),
    (lambda: mv.simulate(TRACE, limit="6 gigs"), "'6 gigs'", "text such as '6 GiB'"),
]
STEPS = [
    (lambda: mv.run(with_loss(None)), "(2, 1)", "lambda output: output.mean()"),
    (lambda: mv.record(with_loss(None)), "(2, 1)", "lambda output: output.mean()"),
    (lambda: mv.run(with_loss(lambda _output: None)), "NoneType", "lambda output: output.mean()"),
    (lambda: mv.run(with_loss(lambda output: output.sum().detach())), "does not require grad", "under no_grad or detached"),
    (lambda: mv.record(with_loss(lambda output: output.sum().detach())), "does not require grad", "under no_grad or detached"),
    (lambda: mv.run(mv.TrainStep(Frozen(), INPUTS, torch.sum)), "does not require grad", "parameter that requires grad"),
    (lambda: mv.run(no_backward), "no parameter has a gradient", "call backward"),
    (lambda: mv.record(no_backward), "no parameter has a gradient", "call backward"),
    (lambda: mv.TrainStep(MODEL), "needs the model's inputs", "a tensor, a tuple"),
    (lambda: mv.TrainStep(3), "not 3", "a model or a callable"),
    (lambda: mv.run(MODEL), "a model alone", "mv.TrainStep(model, inputs, loss_fn, optimizer)"),
    (lambda: mv.run("revnet"), "'revnet'", "a model or a callable"),
    (lambda: mv.explore(MODEL), "a model alone", "mv.TrainStep(model, inputs, loss_fn, optimizer)"),
]
MIXED_UP = [
    (lambda: mv.plan(STEP), "TrainStep", "a Trace, as mv.record(step) returns"),
    (lambda: mv.simulate(STEP), "TrainStep", "a Trace, as mv.record(step) returns"),
    (lambda: mv.simulate(TRACE, "heuristics"), "'heuristics'", "mv.plan(trace, recompute='heuristics')"),
    (lambda: mv.simulate(TRACE, None, "H200"), "'H200'", "machine_for('H200')"),
    (lambda: mv.apply("heuristics"), "'heuristics'", "mv.Plan("),
    (lambda: mv.apply(TRACE), "Trace('Sequential' on cpu", "mv.Plan("),
    (lambda: mv.report("runs.memviz.json"), "'runs.memviz.json'", "mv.report(mv.load(path))"),
    (lambda: mv.report(TRACE), "Trace('Sequential' on cpu", "mv.load or mv.run"),
]
CASES = [*UNKNOWN_NAMES, *PATTERNS, *THRESHOLDS, *LIMITS, *STEPS, *MIXED_UP]


@pytest.mark.parametrize(("ask", "passed", "would_do"), CASES, ids=range(len(CASES)))
def test_a_mistake_is_answered_in_the_caller_s_words(ask, passed, would_do):
    with pytest.raises(ValueError, match=r"\S") as caught:
        ask()
    message = str(caught.value)
    assert passed in message
    assert would_do in message
    assert len(message) < 400


@pytest.mark.parametrize("name", ["revnett", "lstms"])
def test_an_unknown_factory_is_answered_as_an_unknown_name_is(name):
    with pytest.raises(AttributeError, match=f"no workload '{name}'; did you mean .* There are cnn, lstm, revnet, transformer"):
        getattr(mv.workloads, name)


def test_the_presets_that_the_message_about_a_machine_names_exist():
    assert machine_for("H200").name == "H200"


def test_nothing_changes_when_a_mistake_is_refused():
    before = {name: tensor.clone() for name, tensor in MODEL.state_dict().items()}
    for ask, _, _ in CASES:
        with pytest.raises(ValueError, match=r"\S"):
            ask()
    assert all(torch.equal(tensor, before[name]) for name, tensor in MODEL.state_dict().items())
    assert mv.run(STEP, repeats=1).gradients.agreement == "exact"


FULL_DISK = """
import resource, warnings
import torch
import memviz as mv

# A file may not grow past 1 KiB: to whoever writes one, that is a full disk.
step = mv.TrainStep(torch.nn.Sequential(*[torch.nn.Linear(64, 64), torch.nn.Tanh()] * 3), torch.ones(64, 64), torch.sum)
mv.run(step, repeats=1)
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    run = mv.run(step, mv.Plan(swap=mv.Swap(min_bytes=0, occupancy=0.0)), repeats=1)
print(run.gradients.agreement, run.swapped_out)
print(caught[0].category.__name__, caught[0].message)
"""


def test_a_disk_that_fills_up_while_swapping_is_said_and_the_step_ends_right():
    shown = subprocess.run([sys.executable, "-c", FULL_DISK], capture_output=True, text=True, check=False, timeout=120)
    assert shown.returncode == 0, shown.stderr
    result, warned = shown.stdout.splitlines()
    assert result == "exact 0"
    assert warned.startswith("RuntimeWarning swapping stopped and values stay in memory, since writing one failed: [Errno 27]")
