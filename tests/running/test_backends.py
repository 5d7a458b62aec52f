"""What comes back for each thing that can happen to a request; the same for the process and, where it applies, the thread."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memviz.core.events import Failed, Finished, Recorded, Request, Samples
from memviz.core.failure import Cause
from memviz.core.plan import Plan
from memviz.running import ProcessBackend, ThreadBackend
from memviz.running.place import between_cells

SECONDS = 60


@pytest.fixture
def process(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    backend = ProcessBackend("small", work="small_works:by_parameter", patience=2)
    yield backend
    backend.close()


@pytest.fixture
def thread(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from small_works import by_parameter

    backend = ThreadBackend(lambda request, on_event, cancelled: by_parameter(request, "small", on_event, cancelled))
    yield backend
    backend.close()


@pytest.fixture(params=["process", "thread"])
def backend(request):
    return request.getfixturevalue(request.param)


def asking(does: str, plan: Plan | None = None) -> Request:
    return Request(plan=plan, parameters={"does": does})


def events_of(backend, request) -> list:
    events = []
    job = backend.start(request, events.append)
    assert job.wait(SECONDS)
    assert job.done
    return events


def test_a_run_streams_its_samples_and_ends_with_the_run(backend):
    *samples, last = events_of(backend, asking("streams", Plan()))
    assert [sample.op for event in samples for sample in event.samples] == [0, 1, 2]
    assert all(isinstance(event, Samples) for event in samples)
    assert isinstance(last, Finished)
    assert last.run.peak == 7


def test_a_request_without_a_plan_ends_with_the_trace(backend):
    last = events_of(backend, asking("streams"))[-1]
    assert isinstance(last, Recorded)
    assert last.trace.title == "small"


@pytest.mark.parametrize(
    ("does", "cause", "words"),
    [("raises_memory_error", Cause.OUT_OF_MEMORY, "out of memory"), ("raises_value_error", Cause.ERROR, "length is at least 1, not 0")],
)
def test_what_the_work_raises_is_a_failure_and_the_next_request_works(backend, does, cause, words):
    (failed,) = events_of(backend, asking(does))
    assert isinstance(failed, Failed)
    assert failed.failure.cause is cause
    assert words in failed.failure.message
    assert does in failed.failure.details
    assert isinstance(events_of(backend, asking("streams"))[-1], Recorded)


@pytest.mark.parametrize(("does", "words"), [("kills_itself", "signal 9 (SIGKILL)"), ("exits", "exit code 3")])
def test_the_death_of_the_process_is_a_failure_and_the_next_request_starts_another(process, does, words):
    (failed,) = events_of(process, asking(does))
    assert failed.failure.cause is Cause.DIED
    assert words in failed.failure.message
    assert isinstance(events_of(process, asking("streams"))[-1], Recorded)


def test_a_process_that_cannot_start_is_a_failure_and_the_next_request_tries_again(process, monkeypatch, tmp_path):
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.tempdir", str(tmp_path / "gone"))
        (failed,) = events_of(process, asking("streams"))
    assert "could not be started" in failed.failure.message
    assert isinstance(events_of(process, asking("streams"))[-1], Recorded)


@pytest.mark.parametrize(("error", "cause"), [(SystemExit, Cause.ERROR), (KeyboardInterrupt, Cause.CANCELLED)])
def test_a_live_step_that_exits_or_is_interrupted_ends_and_the_thread_goes_on(error, cause):
    def work(request, on_event, cancelled):
        raise error

    backend = ThreadBackend(work)
    for _ in range(2):
        (failed,) = events_of(backend, Request())
        assert failed.failure.cause is cause
    backend.close()


def test_the_process_stays_warm_from_one_request_to_the_next(process):
    first, second = (events_of(process, asking("streams", Plan()))[-1].run.title for _ in range(2))
    assert first == second


def test_a_process_at_rest_is_gone_until_the_next_request(process):
    first = events_of(process, asking("streams", Plan()))[-1].run.title
    process.rest()
    assert events_of(process, asking("streams", Plan()))[-1].run.title != first


def test_a_process_that_works_does_not_rest(process):
    moving, events = threading.Event(), []
    job = process.start(asking("loops"), lambda event: (events.append(event), moving.set()))
    assert moving.wait(SECONDS)
    process.rest()
    assert not job.done
    job.cancel()
    assert job.wait(SECONDS)
    assert events[-1].failure.cause is Cause.CANCELLED


def test_cancelling_stops_the_work_and_keeps_the_process(backend):
    moving, events = threading.Event(), []
    job = backend.start(asking("loops"), lambda event: (events.append(event), moving.set()))
    assert moving.wait(SECONDS)
    assert not job.done
    job.cancel()
    assert job.wait(SECONDS)
    assert events[-1].failure.cause is Cause.CANCELLED
    assert isinstance(events_of(backend, asking("streams"))[-1], Recorded)


def test_a_newer_request_cancels_the_older(backend):
    older = []
    job = backend.start(asking("loops"), older.append)
    assert isinstance(events_of(backend, asking("streams"))[-1], Recorded)
    assert job.done
    assert older[-1].failure.cause is Cause.CANCELLED


def test_work_that_does_not_hear_is_killed(process):
    moving, events = threading.Event(), []
    job = process.start(asking("is_stuck"), lambda event: (events.append(event), moving.set()))
    assert moving.wait(SECONDS)
    job.cancel()
    assert job.wait(20)
    assert events[-1].failure.cause is Cause.CANCELLED
    assert isinstance(events_of(process, asking("streams"))[-1], Recorded)


def test_a_closed_backend_says_so(backend):
    backend.close()
    with pytest.raises(RuntimeError, match="closed"):
        backend.start(asking("streams"), print)


def test_a_listener_that_raises_leaves_nobody_waiting(process, monkeypatch):
    reported = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: reported.set())

    def listener(event):
        msg = "the listener's own"
        raise RuntimeError(msg)

    assert process.start(asking("streams"), listener).wait(SECONDS)
    assert reported.wait(SECONDS)
    assert isinstance(events_of(process, asking("streams"))[-1], Recorded)


def test_a_worker_is_replaced_after_an_error_on_a_cuda_device(process):
    first, failed = events_of(process, asking("errs_on_cuda"))
    assert failed.failure.message == "RuntimeError: CUDA error: device-side assert triggered"
    second = events_of(process, asking("streams", Plan()))[-1].run.title
    assert second.split()[1] != first.stage


def test_a_worker_stays_after_an_error_elsewhere(process):
    before = events_of(process, asking("streams", Plan()))[-1].run.title
    events_of(process, asking("raises_value_error"))
    assert events_of(process, asking("streams", Plan()))[-1].run.title == before


def test_what_the_work_warned_of_is_in_the_run(process):
    assert events_of(process, asking("warns", Plan()))[-1].run.notes == ("the disk is full",)


def test_the_worker_s_temporary_files_go_with_it(process):
    file = Path(events_of(process, asking("writes_a_file", Plan()))[-1].run.title)
    assert file.exists()
    events_of(process, asking("kills_itself"))
    assert not file.parent.exists()


ORPHANED = """
import sys, time
from memviz.core.events import Request
from memviz.running import ProcessBackend
if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    backend = ProcessBackend("small", work="small_works:by_parameter")
    backend.start(Request(parameters={"does": "writes_a_file", "then_stuck": True}), lambda event: print(event.stage, flush=True))
    time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_an_orphaned_worker_ends_and_leaves_no_files(tmp_path, how):
    script = tmp_path / "orphaned.py"
    script.write_text(ORPHANED)
    parent = subprocess.Popen([sys.executable, script, Path(__file__).parent], stdout=subprocess.PIPE, text=True)
    with parent:
        file = Path(parent.stdout.readline().strip())
        assert file.exists()
        assert parent.stdout.readline() == "stuck\n"
        parent.send_signal(how)
    worker = int(file.name.partition("-")[0])
    deadline = time.monotonic() + SECONDS
    while (file.parent.exists() or runs(worker)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not file.parent.exists()
    assert not runs(worker)


def runs(process: int) -> bool:
    """Whether the process is there; what ended and that nobody has asked after (a zombie) has no command line."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""
    except OSError:
        return False


def test_live_work_waits_for_the_end_of_the_cell(monkeypatch):
    """In a kernel a cell is a callback of the loop: what a live step does never happens in the middle of one."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from small_works import a_run

    happened = []

    async def kernel():
        backend = ThreadBackend(lambda *_: happened.append("step") or a_run("live"), between_cells())
        ended = threading.Event()
        job = backend.start(asking("streams"), lambda event: (happened.append(type(event).__name__), ended.set()))
        time.sleep(0.2)  # noqa: ASYNC251  # the rest of the cell, which blocks the loop
        happened.append("end of the cell")
        while not job.done:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        backend.close()

    asyncio.run(kernel())
    assert happened == ["end of the cell", "step", "Finished"]
