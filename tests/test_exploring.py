"""What the front door of the explorer hands to the widget and to the worker, in a real worker."""

import time

import pytest
import torch

import memviz as mv
from memviz.core.files import Document
from memviz.exploring import export

SECONDS = 60


def settled(explorer):
    """The explorer's state once its first request has ended."""
    deadline = time.monotonic() + SECONDS
    while explorer.state.running and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not explorer.state.running
    return explorer.state


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_workload_s_device_reaches_the_worker():
    state = settled(mv.explore(mv.workloads.lstm(length=3, units=4, batch=2, device="cuda")))
    assert "device 'cuda': this machine's torch finds no CUDA device; use 'cpu'" in state.errors["run"]


def test_a_workload_s_settings_and_device_reach_the_worker():
    state = settled(mv.explore(mv.workloads.lstm(length=3, units=4, batch=2, device="cpu")))
    assert state.errors.get("run", "") == ""
    assert state.trace.device == "cpu"
    assert len([op for op in state.trace.ops if op.module == "cells.0" and op.name == "aten::addmm"]) == 2 * 3


def test_exports_never_share_a_name_however_long_the_title(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    step = mv.TrainStep(torch.nn.Linear(2, 1), torch.ones(1, 2), title="long " * 100)
    document = Document(trace=mv.record(step))
    paths = [export(document) for _ in range(3)]
    assert len(set(paths)) == 3
    assert len(list(tmp_path.glob("*.memviz.json"))) == 3
