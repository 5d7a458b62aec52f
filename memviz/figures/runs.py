"""The table of runs, as plain data: each run against the one that it is an attempt to better."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from memviz.core.run import Agreement, Gradients, Run
from memviz.core.units import format_bytes, format_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run. Ratios are to the baseline's: the first run of the same step on the same device that keeps everything.

    ``peak`` and ``activations`` are bytes, ``seconds`` those of an unmetered step. A ratio is None without a baseline and
    where the baseline has 0; ``limit`` is None without one.
    """

    title: str
    label: str
    device: str
    peak: int
    activations: int
    seconds: float
    peak_ratio: float | None
    activations_ratio: float | None
    seconds_ratio: float | None
    gradients: str
    agreement: Agreement
    limit: int | None
    baseline: bool

    HEAD: ClassVar[tuple[str, ...]] = ("run", "peak", "activations", "time", "gradients", "limit", "device")

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, under ``HEAD``."""
        return (
            self.label,
            format_bytes(self.peak) + self._against(self.peak_ratio),
            format_bytes(self.activations) + self._against(self.activations_ratio),
            format_seconds(self.seconds) + self._against(self.seconds_ratio),
            self.gradients,
            "" if self.limit is None else format_bytes(self.limit),
            self.device,
        )

    def _against(self, ratio: float | None) -> str:
        return "" if ratio is None or self.baseline else f" ({ratio:.0%})"


def run_rows(runs: Iterable[Run]) -> tuple[RunRow, ...]:
    """One row for each run, in their order."""
    runs = tuple(runs)
    return tuple(_row(run, baseline_of(run, runs)) for run in runs)


def baseline_of(run: Run, runs: Iterable[Run]) -> Run | None:
    """The first of the runs that keeps everything, among those of the same step and device; None if there is none."""
    return next((one for one in runs if one.plan.keeps_everything and (one.title, one.device) == (run.title, run.device)), None)


def label_of(run: Run) -> str:
    """The plan's name, or what it does where it has none."""
    return run.plan.label or ("no plan" if run.plan.keeps_everything else "unnamed plan")


def describe(gradients: Gradients) -> str:
    """How the gradients compare with the unplanned step's, in a few words."""
    if gradients.agreement is Agreement.UNCHECKED:
        return f"not checked: {gradients.reason}" if gradients.reason else "not checked"
    if gradients.agreement is Agreement.EXACT:
        return "exact"
    where = f" in {gradients.worst}" if gradients.worst else ""
    return f"{gradients.agreement.value} ({gradients.max_difference:.1e}{where})"


def _row(run: Run, base: Run | None) -> RunRow:
    return RunRow(
        title=run.title,
        label=label_of(run),
        device=run.device,
        peak=run.peak,
        activations=run.activations,
        seconds=run.seconds,
        peak_ratio=_ratio(run.peak, base.peak if base else 0),
        activations_ratio=_ratio(run.activations, base.activations if base else 0),
        seconds_ratio=_ratio(run.seconds, base.seconds if base else 0),
        gradients=describe(run.gradients),
        agreement=run.gradients.agreement,
        limit=run.limit,
        baseline=run is base,
    )


def _ratio(number: float, baseline: float) -> float | None:
    return number / baseline if baseline else None
