"""What happened in one training step, as frozen data that checks itself."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property, wraps
from typing import Any, TypeVar

from memviz.core.units import format_seconds

T = TypeVar("T")


class Phase(StrEnum):
    """The part of a training step that an op runs in."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


class Category(StrEnum):
    """What a value is for. Declared in the order in which timelines stack them, from the floor up."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    OPTIMIZER_STATE = "optimizer_state"
    INPUT = "input"
    GRADIENT = "gradient"
    ACTIVATION = "activation"
    TEMPORARY = "temporary"


PERSISTENT = frozenset({Category.PARAMETER, Category.BUFFER, Category.OPTIMIZER_STATE, Category.INPUT, Category.GRADIENT})
"""Categories that a plan never touches; what else is live at the end of forward is waiting for backward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One module of the model: its path (``""`` is the outermost), its class, and whether REVERSE can apply (E8)."""

    path: str
    kind: str
    reversible: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operator call. Value ids index ``Trace.values``."""

    index: int
    name: str
    phase: Phase
    module: str
    call: int
    nth: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    seconds: float
    flops: int = 0
    forward: int | None = None
    """For a backward op: the forward op whose gradient it computes, where known."""
    source: str | None = None
    """The user's line that asked for it, as ``file.py:12``."""
    random: bool = False
    mutates: tuple[int, ...] = ()
    """Ids of the value versions that it overwrote (the versions before the write)."""
    replayable: bool = True
    """Whether running it again on the same inputs gives the same bits and no side effect (E5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One version of one storage. Views share it; an in-place write starts a new one.

    ``released`` is the op index after which only autograd's saves still hold it (E2: where a dropped value's memory
    would really go), ``freed`` the one after which it was gone; both equal ``len(ops)`` if it outlived the step.
    ``born`` is -1 where it existed before the step.
    """

    id: int
    storage: int
    """Values of the same number are versions of one storage."""
    key: str
    nbytes: int
    dtype: str
    shape: tuple[int, ...]
    device: str
    category: Category
    producer: int | None
    """Index of the op that made it; None for what existed before the step or was made out of sight."""
    born: int
    last_used: int
    released: int
    freed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """One tensor that autograd saved: which value, packed while which op ran, unpacked before which ops (maybe never)."""

    value: int
    packed: int
    unpacked: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Trace:
    """One recorded training step.

    Attributes:
        title: What was stepped, for people.
        device: The device's name, as in ``cpu`` or ``NVIDIA H200``.
        ops: In the order in which they ran; ``ops[i].index == i``.
        values: ``values[i].id == i``.
        saves: In the order in which autograd packed them.
        modules: In the order in which they were first called; the outermost first.
        seconds: Median time of a plain, unrecorded step.
        environment: Versions and machine, for people.

    Raises:
        ValueError: If an index points at nothing or the numbering is broken, naming the first such place.
    """

    title: str
    device: str
    ops: tuple[Op, ...]
    values: tuple[Value, ...]
    saves: tuple[Save, ...]
    modules: tuple[Module, ...] = ()
    seconds: float = 0.0
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, op in enumerate(self.ops):
            if op.index != index:
                msg = f"op {index} is numbered {op.index}"
                raise ValueError(msg)
            self._check_values(f"op {index} ({op.name})", (*op.inputs, *op.outputs, *op.mutates))
        for index, value in enumerate(self.values):
            if value.id != index:
                msg = f"value {index} is numbered {value.id}"
                raise ValueError(msg)
            if not -1 <= value.born <= value.released <= value.freed <= len(self.ops):
                msg = f"value {index} ({value.key}) is born {value.born}, released {value.released}, freed {value.freed}"
                raise ValueError(msg)
        for index, save in enumerate(self.saves):
            self._check_values(f"save {index}", (save.value,))

    def __repr__(self) -> str:
        counts = f"{len(self.ops)} ops, {len(self.values)} values, {len(self.saves)} saves"
        return f"Trace({self.title!r} on {self.device}: {counts}, {format_seconds(self.seconds)})"

    def _check_values(self, where: str, ids: tuple[int, ...]) -> None:
        for value in ids:
            if not 0 <= value < len(self.values):
                msg = f"{where} names value {value}, but there are {len(self.values)}"
                raise ValueError(msg)

    def __getstate__(self) -> dict[str, object]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @cached_property
    def derived(self) -> dict[object, Any]:
        """What ``once_per_trace`` has kept."""
        return {}

    @cached_property
    def end_of_forward(self) -> int:
        """Index of the first op that is not a forward op; the number of ops if there is none."""
        return next((op.index for op in self.ops if op.phase is not Phase.FORWARD), len(self.ops))

    @cached_property
    def saves_of(self) -> dict[int, tuple[Save, ...]]:
        """The saves of each saved value, by value id."""
        found: dict[int, list[Save]] = {}
        for save in self.saves:
            found.setdefault(save.value, []).append(save)
        return {value: tuple(saves) for value, saves in found.items()}


def once_per_trace(derive: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """The function, whose result is worked out once for a trace and kept with it: no caller may change it."""

    @wraps(derive)
    def derived(trace: Trace) -> T:
        kept = trace.derived
        if derived not in kept:
            kept[derived] = derive(trace)
        return kept[derived]

    return derived


def check_trace(trace: object, wanted_by: str) -> None:
    """ValueError, in the name of the function that wants one, for what is no trace."""
    if not isinstance(trace, Trace):
        msg = f"{wanted_by} takes a Trace, as mv.record(step) returns, not {trace!r}"
        raise ValueError(msg)
