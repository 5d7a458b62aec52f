"""How long ``memviz demo --quick`` takes, as a person runs it: start of Python, imports, report and all."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.findings import Finding, publish


def findings() -> Iterator[Finding]:
    """One run in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "memviz", "demo", "--quick", "--out", folder]
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 our own module
        yield Finding(question="seconds of memviz demo --quick", measured=time.perf_counter() - start, target=60)


if __name__ == "__main__":
    publish("quick_demo", findings())
