"""Which workloads there are."""

from collections.abc import Callable

from memviz.core.parameters import Setting
from memviz.workloads.catalogue import cnn, lstm, revnet, transformer
from memviz.workloads.description import Workload, closest

_FACTORIES: dict[str, Callable[[], Workload]] = {"cnn": cnn, "lstm": lstm, "revnet": revnet, "transformer": transformer}


def names() -> tuple[str, ...]:
    """The names that ``get`` knows, sorted."""
    return tuple(sorted(_FACTORIES))


def get(name: str, *, device: str = "auto", **settings: Setting) -> Workload:
    """The workload of that name with those settings; ValueError names the likely name."""
    if name not in _FACTORIES:
        msg = f"there is no workload {name!r}; {closest(str(name), names())}"
        raise ValueError(msg)
    return _FACTORIES[name]().with_settings(device=device, **settings)
