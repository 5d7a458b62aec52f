"""What a benchmark found: figures beside their targets, as a file and as a table."""

import datetime as dt
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

WIDTH = 92
"""Of the questions in the table."""

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One figure.

    Attributes:
        question: What was asked.
        measured: A ratio within one run, a count of what should not be, or seconds where the question says so.
        target: The most that it may be; None where nothing was promised.
        details: What it was made of: bytes, medians, settings.
    """

    question: str
    measured: float
    target: float | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target holds; None where there is none."""
        return None if self.target is None else self.measured <= self.target

    def row(self) -> str:
        """As a line of the table."""
        target = "" if self.target is None else f"{self.target:.2f}"
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return f"{self.question:<{WIDTH}}{target:>8}{self.measured:>10.3f}  {verdict}".rstrip()


HEADER = f"{'question':<{WIDTH}}{'at most':>8}{'measured':>10}"


def publish(name: str, findings: Iterable[Finding]) -> None:
    """Print each finding as it comes, and write ``results/<name>.json``."""
    show(HEADER)
    write(name, [shown(finding) for finding in findings])


def shown(finding: Finding) -> Finding:
    """The finding, printed."""
    show(finding.row())
    return finding


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def write(name: str, findings: Sequence[Finding]) -> Path:
    """The findings, and what they were measured on, as a file."""
    rows = [
        {"question": f.question, "target": f.target, "measured": round(f.measured, 4), "met": f.met, "details": dict(f.details)}
        for f in findings
    ]
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"benchmark": name, "machine": machine(), "findings": rows}, indent=1) + "\n")
    return path


def read(name: str) -> Iterator[Finding]:
    """The findings in ``results/<name>.json``."""
    for row in json.loads((RESULTS / f"{name}.json").read_text())["findings"]:
        yield Finding(question=row["question"], measured=row["measured"], target=row["target"], details=row["details"])


def machine() -> dict[str, object]:
    """Where and when: versions, CPUs and the date."""
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "torch": _version("torch"),
        "transformers": _version("transformers"),
        "python": platform.python_version(),
        "architecture": platform.machine(),
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
