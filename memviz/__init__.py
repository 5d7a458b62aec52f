"""memviz: see where a PyTorch training step's memory goes, and what it costs to need less.

>>> import memviz as mv
>>> plan = mv.Plan(rules={"blocks.*:relu": "recompute"}, swap=mv.Swap(occupancy=0.5))
"""

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memviz import workloads as workloads
    from memviz.core.files import load as load
    from memviz.core.plan import Plan as Plan
    from memviz.core.plan import Swap as Swap
    from memviz.core.simulate import simulate as simulate
    from memviz.core.strategies import plan as plan
    from memviz.exploring import explore as explore
    from memviz.pytorch.apply import apply as apply
    from memviz.pytorch.record import record as record
    from memviz.pytorch.run import run as run
    from memviz.pytorch.step import TrainStep as TrainStep
    from memviz.reporting import report as report

__version__ = "0.1.0.dev0"

# No module of this package may be called like a public name: importing it would put the module in the name's place.
_HOMES = {
    "Plan": "memviz.core.plan",
    "Swap": "memviz.core.plan",
    "TrainStep": "memviz.pytorch.step",
    "apply": "memviz.pytorch.apply",
    "explore": "memviz.exploring",
    "load": "memviz.core.files",
    "plan": "memviz.core.strategies",
    "record": "memviz.pytorch.record",
    "report": "memviz.reporting",
    "run": "memviz.pytorch.run",
    "simulate": "memviz.core.simulate",
    "workloads": "",
}

_DRAWING = {"anywidget", "ipywidgets", "plotly", "traitlets"}
"""What a training server does without."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        close = get_close_matches(name, __all__, 1)
        hint = f"did you mean {close[0]!r}? It" if close else "it"
        msg = f"module 'memviz' has no attribute {name!r}; {hint} has {', '.join(__all__)}"
        raise AttributeError(msg)
    home = _HOMES[name]
    try:
        found = getattr(import_module(home), name) if home else import_module(f"memviz.{name}")
    except ModuleNotFoundError as error:
        if error.name not in _DRAWING:
            raise
        msg = f"memviz.{name} needs {error.name}, which is not installed: pip install 'memviz[notebook]'"
        raise ImportError(msg, name=error.name) from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
