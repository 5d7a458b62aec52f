"""What an import loads, seen in a fresh interpreter: import-linter reads imports, and lazy ones it cannot tell from early ones."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "plotly", "ipywidgets", "anywidget")


def loaded_by(statement: str) -> set[str]:
    look = f"import sys; {statement}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=120)
    return set(shown.stdout.split())


def test_the_look_sees_what_is_loaded():
    assert "torch" in loaded_by("import torch")


@pytest.mark.parametrize(
    "statement",
    [
        "import memviz",
        "import memviz; memviz.Plan, memviz.Swap, memviz.simulate, memviz.plan, memviz.load",
        "import memviz; memviz.workloads.revnet()",
        "import memviz.cli",
    ],
)
def test_loads_nothing_heavy(statement: str):
    assert loaded_by(statement) == set()


def test_the_engine_loads_nothing_that_draws():
    assert loaded_by("import memviz; memviz.TrainStep, memviz.record, memviz.run, memviz.apply") == {"torch"}
