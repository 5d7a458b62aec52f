"""The quick demo, as a person runs it: real steps, a table, a report and a file that loads again."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import memviz as mv
from memviz import cli

LABELS = {
    "RevNet": ["no plan", "heuristics", "no plan, 60% limit", "swap, 60% limit", "reversed"],
    "Long LSTM": ["no plan", "heuristics", "no plan, 60% limit", "swap, 60% limit"],
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "a folder" / "to make"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # As `make demo` has it: beside other work, threads that spin while they wait would take several times as long.
    ended = subprocess.run(
        [sys.executable, "-m", "memviz", "demo", "--quick", "--out", out],
        capture_output=True, text=True, check=False, timeout=280, env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 0, ended.stderr
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return SimpleNamespace(
        out=out, text=ended.stdout, error=ended.stderr, processor_seconds=used, document=mv.load(out / "runs.memviz.json")
    )


def test_it_takes_a_minute_s_worth_of_one_core_at_most(demo):
    assert demo.processor_seconds <= 60
    assert demo.error == ""


def test_every_line_is_in_the_file_that_load_reads(demo):
    runs = [(run.title, run.plan.label) for run in demo.document.runs]
    wanted = [(title, label) for title, labels in LABELS.items() for label in labels if not label.startswith("no plan,")]
    assert sorted(runs) == sorted(wanted)
    assert demo.document.trace.title == "RevNet"


def test_gradients_are_those_of_the_unplanned_step(demo):
    assert {
        (run.title, run.plan.label): str(run.gradients.agreement) for run in demo.document.runs if run.gradients.agreement != "exact"
    } == {}


def test_without_swapping_the_limit_is_crossed_and_with_it_kept(demo):
    assert [(failure.cause, failure.holders != ()) for failure in demo.document.failures] == [("out_of_memory", True)] * 2
    swapping = [run for run in demo.document.runs if run.limit is not None]
    assert len(swapping) == 2
    assert all(run.peak <= run.limit and run.swapped_out > 0 for run in swapping)


def test_every_prediction_is_within_five_percent(demo):
    rows = re.findall(r"^(?P<row>.{35})\s*(\S+ \S+)\s+(\S+ \S+)\s+\S+ \S+\s+\S+ m?s  exact", demo.text, flags=re.MULTILINE)
    assert len(rows) == len(demo.document.runs)
    for row, measured, predicted in rows:
        assert _number(predicted) == pytest.approx(_number(measured), rel=0.05), row


def _number(size: str) -> float:
    assert size.endswith(" MiB")
    return float(size.removesuffix(" MiB"))


def test_the_report_holds_every_run_and_asks_no_network(demo):
    page = (demo.out / "report.html").read_text(encoding="utf-8")
    assert all(title in page for title in LABELS)
    assert all(label in page for labels in LABELS.values() for label in labels if not label.startswith("no plan,"))
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=.?https?://", page)


def test_an_out_that_is_a_file_is_refused_before_anything_runs(tmp_path: Path, capsys):
    taken = tmp_path / "taken"
    taken.write_text("mine", encoding="utf-8")
    assert cli.main(["demo", "--quick", "--out", str(taken)]) == 1
    error = capsys.readouterr().err
    assert str(taken) in error
    assert "--out" in error
    assert taken.read_text(encoding="utf-8") == "mine"
