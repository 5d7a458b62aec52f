"""What memviz costs in time: a plan that keeps everything, and recording. Both in turn with the plain step."""

import statistics
import time
from collections.abc import Callable, Iterator

import memviz as mv
from benchmarks.findings import Finding, publish
from memviz.pytorch.record import Recorder
from memviz.pytorch.step import TrainStep, as_step


def findings() -> Iterator[Finding]:
    """The engine without anything to do, then the recorder."""
    cnn = as_step(mv.workloads.cnn())
    plan = mv.Plan(rules={"*": "keep"})
    yield compared(
        "residual CNN, a plan that keeps everything / plain step", cnn, lambda: cnn(mv.apply(plan, cnn.modules[""])), target=1.05, pairs=15
    )
    lstm = as_step(mv.workloads.lstm(length=400))
    yield compared("LSTM of length 400, recorded step / plain step", lstm, lambda: recorded(lstm), target=4.0, pairs=9)
    yield compared("LSTM of length 400, all of mv.record / plain step", lstm, lambda: mv.record(lstm), pairs=3)


def recorded(step: TrainStep) -> None:
    """The one step of ``mv.record`` that is recorded."""
    with Recorder(step):
        step()


def compared(question: str, step: TrainStep, other: Callable[[], object], *, pairs: int, target: float | None = None) -> Finding:
    """The median of each pair's ratio: what else the machine does slows both halves of a pair."""
    runs: tuple[Callable[[], object], Callable[[], object]] = (step, other)
    for warm_up in runs:
        warm_up()
    times = [in_turn(runs, swapped=bool(number % 2)) for number in range(pairs)]
    return Finding(
        question=question,
        measured=statistics.median(slow / plain for plain, slow in times),
        target=target,
        details={
            "pairs": pairs,
            "plain_seconds_median": round(statistics.median(plain for plain, _ in times), 4),
            "ratios": [round(slow / plain, 3) for plain, slow in times],
            "ratio_of_medians": round(statistics.median(slow for _, slow in times) / statistics.median(plain for plain, _ in times), 3),
        },
    )


def in_turn(runs: tuple[Callable[[], object], Callable[[], object]], *, swapped: bool) -> tuple[float, float]:
    """Seconds of both, the second one first if ``swapped``."""
    seconds = [0.0, 0.0]
    for at in (1, 0) if swapped else (0, 1):
        start = time.perf_counter()
        runs[at]()
        seconds[at] = time.perf_counter() - start
    return seconds[0], seconds[1]


if __name__ == "__main__":
    publish("overhead", findings())
