"""Every benchmark, each in its own process, then one table; the exit code says whether all targets were met."""

import subprocess
import sys

from benchmarks.findings import HEADER, read, show, shown

NAMES = ("activations", "depth", "limits", "overhead", "planning", "quick_demo", "predictions", "explorer")


def main() -> int:
    """Run all, or those named on the command line; 0 if every target was met."""
    names = sys.argv[1:] or NAMES
    for name in names:
        show(f"\n{name}")
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)  # noqa: S603 our own modules
    show(f"\n{HEADER}")
    findings = [shown(finding) for name in names for finding in read(name)]
    return int(any(finding.met is False for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
