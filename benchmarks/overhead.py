"""What memviz costs in time: a plan that keeps everything, and recording. Each between two plain steps."""

import statistics
import time
from collections.abc import Callable, Iterator

import memviz as mv
from benchmarks.findings import Finding, publish
from memviz.pytorch.record import Recorder
from memviz.pytorch.step import TrainStep, as_step


def findings() -> Iterator[Finding]:
    """The engine without anything to do, then the recorder."""
    cnn = as_step(mv.workloads.cnn(batch=64))  # about a second on 2 cores
    plan = mv.Plan(rules={"*": "keep"})
    yield compared(
        "residual CNN, a plan that keeps everything / plain step", cnn, lambda: cnn(mv.apply(plan, cnn.modules[""])), target=1.05, rounds=15
    )
    lstm = as_step(mv.workloads.lstm(length=400))
    yield compared("LSTM of length 400, recorded step / plain step", lstm, lambda: recorded(lstm), target=4.0, rounds=9)
    yield compared("LSTM of length 400, all of mv.record / plain step", lstm, lambda: mv.record(lstm), target=4.0, rounds=3)


def recorded(step: TrainStep) -> None:
    """The one step of ``mv.record`` that is recorded."""
    with Recorder(step):
        step()


def compared(question: str, step: TrainStep, other: Callable[[], object], *, rounds: int, target: float | None = None) -> Finding:
    """The other step between two plain ones, again and again; the median of its ratio to their mean.

    What else the machine does slows all three, and ``plain_against_plain`` shows what is left of that.
    """
    for warm_up in (step, other):
        warm_up()
    times = [tuple(map(timed, (step, other, step))) for _ in range(rounds)]
    wall = [(first[0], between[0], second[0]) for first, between, second in times]
    return Finding(
        question=question,
        measured=statistics.median(map(ratio, wall)),
        target=target,
        details={
            "rounds": rounds,
            "ratios": [round(ratio(each), 3) for each in wall],
            "plain_against_plain": round(statistics.median(second / first for first, _, second in wall), 3),
            "plain_seconds_median": round(statistics.median(first for first, _, _ in wall), 3),
            "ratio_of_cpu_seconds": round(statistics.median(ratio((a[1], b[1], c[1])) for a, b, c in times), 3),
        },
    )


def ratio(seconds: tuple[float, float, float]) -> float:
    """The one in the middle as a multiple of the mean of its neighbours."""
    return 2 * seconds[1] / (seconds[0] + seconds[2])


def timed(step: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and seconds of all CPUs together."""
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    publish("overhead", findings())
