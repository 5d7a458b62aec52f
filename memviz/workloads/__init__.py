"""Training steps to look at: each a named factory with typed parameters, described without torch.

>>> from memviz import workloads
>>> workloads.names()
('cnn', 'lstm', 'revnet', 'transformer')
>>> workloads.lstm(length=50).settings["length"]
50
"""

from memviz.workloads.catalogue import cnn, lstm, revnet, transformer
from memviz.workloads.description import DEVICES, Workload, closest
from memviz.workloads.registry import get, names

__all__ = ["DEVICES", "Workload", "cnn", "get", "lstm", "names", "revnet", "transformer"]


def __getattr__(name: str) -> object:
    msg = f"there is no workload {name!r}; {closest(name, names())}"
    raise AttributeError(msg)
