"""The benchmarks' bookkeeping, on small findings: nothing is timed here."""

import json
from importlib import import_module
from pathlib import Path

import pytest

import memviz as mv
from benchmarks import __main__ as all_of_them
from benchmarks import findings, gpu
from benchmarks.findings import Finding


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(findings, "RESULTS", tmp_path)
    return tmp_path


def test_the_gpu_check_s_questions_can_all_be_asked_of_a_small_step_on_a_cpu() -> None:
    found = list(gpu.findings((mv.workloads.lstm(length=6, units=8, batch=2, device="cpu"),)))
    assert [finding.question for finding in found if "bit-identical" in finding.question and not finding.met] == []
    assert not [finding for finding in found if finding.question.startswith("runs that raise")]
    assert len(found) == 2 + 1 + 5 * 4


@pytest.mark.parametrize(("measured", "target", "met"), [(0.6, 0.6, True), (0.61, 0.6, False), (0.0, 0, True), (3.0, None, None)])
def test_a_target_is_the_most_it_may_be(measured: float, target: float | None, met: bool | None) -> None:
    assert Finding(question="?", measured=measured, target=target).met is met


def test_what_is_published_is_printed_and_comes_back(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = [Finding(question="bytes", measured=0.5, target=0.6, details={"bytes": [1, 2]}), Finding(question="seconds", measured=2.0)]
    findings.publish("some", published)
    assert list(findings.read("some")) == published
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["question", "at", "most", "measured"]
    assert [row.split() for row in rows] == [["bytes", "0.60", "0.500", "met"], ["seconds", "2.000"]]
    machine = json.loads((results / "some.json").read_text())["machine"]
    assert {"date", "torch", "cpus"} <= machine.keys()


def test_all_of_them_say_whether_any_target_was_missed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(all_of_them.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(all_of_them.sys, "argv", ["benchmarks", "good", "bad"])
    findings.write("good", [Finding(question="good", measured=1.0, target=1.0)])
    findings.write("bad", [Finding(question="bad", measured=2.0, target=1.0), Finding(question="after", measured=0.0)])
    assert all_of_them.main() == 1
    assert "MISSED" in capsys.readouterr().out
    monkeypatch.setattr(all_of_them.sys, "argv", ["benchmarks", "good"])
    assert all_of_them.main() == 0


@pytest.mark.parametrize("name", all_of_them.NAMES)
def test_each_has_committed_results_that_can_be_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    if name == "activations":
        pytest.importorskip("transformers")
    assert callable(import_module(f"benchmarks.{name}").findings)
    assert all(finding.measured >= 0 for finding in findings.read(name))


def test_a_step_between_two_plain_ones_is_told_by_its_ratio() -> None:
    from benchmarks.overhead import compared, ratio

    assert ratio((1.0, 3.0, 2.0)) == 2.0
    calls: list[str] = []
    found = compared("nothing", lambda: calls.append("plain"), lambda: calls.append("other"), rounds=2)
    assert calls == ["plain", "other", *["plain", "other", "plain"] * 2]
    assert found.measured > 0
