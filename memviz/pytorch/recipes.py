"""How a dropped value is made again: the op and arguments that made it, back to values that are held (E2)."""

from __future__ import annotations

import time
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import torch

from memviz.pytorch.compat import BelowAutograd
from memviz.pytorch.views import Window

if TYPE_CHECKING:
    from memviz.pytorch.scope import Frame

# Cell and Node have no slots and start from their classes' defaults: there is one of each for every op of a forward pass, of which
# most set three attributes.


class Holder(Protocol):
    """Whatever keeps a saved value in its own way and can give it back."""

    def held(self) -> torch.Tensor | None:
        """A tensor on the value's storage, or None where it is not held any more."""
        ...


class Cell:
    """One version of one storage. ``leaf`` holds what no recipe makes, ``cached`` what has been made again.

    A cell with neither leaf nor node is opaque: nothing can be made from it. One without ``frame`` was there before, so it is out
    of the plan's reach.
    """

    frame: Frame | None = None
    op: str = ""
    output: int = 0
    nth: int = 0
    node: Node | None = None
    leaf: torch.Tensor | None = None
    leaf_version: int | None = None
    """Its version when a recipe first read it."""
    uninitialised: bool = False
    blank: bool = False
    """Whether an op without a recipe has written it: who reads it holds it."""
    read: bool = False
    waiting: int = 0
    cached: torch.Tensor | None = None
    holder: Callable[[], Holder | None] | None = None

    @property
    def replayable(self) -> bool:
        """Whether it can be had again."""
        return self.node is not None or self.leaf is not None

    def held(self) -> torch.Tensor | None:
        """A tensor on its storage, if that is held by others than the recipes that have run."""
        if self.leaf is not None:
            if self.leaf._version != self.leaf_version:
                msg = (
                    "a tensor that memviz recomputes from was modified in place after the forward pass; call backward before "
                    "you change parameters or inputs, or keep what is computed from them"
                )
                raise RuntimeError(msg)
            return self.leaf
        holder = None if self.holder is None else self.holder()
        return None if holder is None else holder.held()


class Reference(NamedTuple):
    """A tensor among an op's arguments: a window on a cell's storage."""

    cell: Cell
    window: Window


@dataclass(slots=True, frozen=True)
class Scratch:
    """An argument that the op only writes: a fresh tensor stands in for it (E5: running statistics change once)."""

    size: torch.Size
    dtype: torch.dtype
    device: torch.device

    def make(self) -> torch.Tensor:
        """The stand-in."""
        return torch.zeros(self.size, dtype=self.dtype, device=self.device)


class Node:
    """One op call that can run again. ``rng`` is its generator and that generator's state before the call."""

    written: tuple[Cell, ...] = ()
    """Versions that the op overwrote: it gets a clone of them."""
    outputs: tuple[tuple[int, weakref.ref[Cell]], ...] | None = None
    """Position among the op's tensors, and the cell that it makes there: weak, since the cell holds its node. None for an op that
    makes only one, which is then the cell that it was reached by."""
    replaced: tuple[tuple[Cell, weakref.ref[Cell]], ...] = ()
    """For a written version, the version that the write made."""
    rng: tuple[torch.Generator, torch.Tensor] | None = None
    kwargs: dict[str, Any] | None = None

    def __init__(self, func: Callable[..., Any], op: str, args: list[Any], reads: list[Cell], frame: Frame, nth: int) -> None:
        self.func, self.op, self.args, self.reads, self.frame, self.nth = func, op, args, reads, frame, nth
        self.grad = torch.is_grad_enabled()
        """Whether gradients were enabled: some kernels return more when they are (the workspace of a fused RNN)."""

    def note_needed(self) -> None:
        """Something is recomputed from it, which the steps that follow are to know."""
        if self.frame.wanted is None:
            self.frame.needed.add((self.op, self.nth))

    def replay(self, reached_by: Cell, tensors: dict[Cell, torch.Tensor], last: Collection[Cell]) -> list[tuple[Cell, torch.Tensor]]:
        """Run the op: the cells it makes, each with a tensor on its storage. What is in ``last`` may be overwritten, not cloned."""
        work = tensors
        if self.written:
            work = dict(tensors)
            for cell in self.written:
                if cell not in last:
                    work[cell] = Window.of(tensors[cell]).on(tensors[cell].untyped_storage().clone())
        args = [
            argument.window.through(work[argument.cell]) if type(argument) is Reference else _rebuilt(argument, work)
            for argument in self.args
        ]
        kwargs = {name: _rebuilt(value, work) for name, value in self.kwargs.items()} if self.kwargs else {}
        torch._C._set_grad_enabled(self.grad)
        if self.rng is None:
            result = self.func(*args, **kwargs)
        else:
            with _generator_at(*self.rng):
                result = self.func(*args, **kwargs)
        if self.outputs is None:
            made = [(reached_by, result)]
        else:
            results = tensors_in(result)
            made = [(cell, results[position]) for position, reference in self.outputs if (cell := reference()) is not None]
        return made + [(cell, work[old]) for old, reference in self.replaced if (cell := reference()) is not None]


@contextmanager
def _generator_at(generator: torch.Generator, state: torch.Tensor) -> Iterator[None]:
    """The generator in the state that it had then, and afterwards in the one that it has now."""
    now = generator.get_state()
    generator.set_state(state)
    try:
        yield
    finally:
        generator.set_state(now)


def _rebuilt(argument: Any, tensors: dict[Cell, torch.Tensor]) -> Any:
    # Not a closure: one that calls itself is a reference cycle, and would hold the storages until the garbage collector runs.
    kind = type(argument)
    if kind is Reference:
        return argument.window.through(tensors[argument.cell])
    if kind is Scratch:
        return argument.make()
    return kind([_rebuilt(part, tensors) for part in argument]) if kind in _SEQUENCES else argument


def tensors_in(tree: object) -> list[torch.Tensor]:
    """Every tensor of an op's arguments or results, in order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    parts = tree if isinstance(tree, (list, tuple)) else tree.values() if isinstance(tree, dict) else ()
    found: list[torch.Tensor] = []
    for part in parts:
        kind = type(part)
        if kind in PLAIN_TENSORS:  # isinstance of Tensor asks its metaclass, in Python.
            found.append(part)
        elif kind not in NO_TENSORS:
            found += tensors_in(part)
    return found


PLAIN_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
NO_TENSORS = frozenset({type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format})
_SEQUENCES = frozenset({list, tuple})


@dataclass(slots=True)
class Tally:
    """What recomputing has cost so far; ``running`` while it goes on. ``dropped`` saves, of which ``done`` are over."""

    ops: int = 0
    seconds: float = 0.0
    running: bool = False
    dropped: int = 0
    done: int = 0


class _Todo(NamedTuple):
    """A node to run, the cell it was reached by, and what it reads."""

    node: Node
    cell: Cell
    reads: list[Cell]


def _order(target: Cell) -> tuple[list[_Todo], dict[Cell, torch.Tensor]]:
    """The nodes to run for a value, each after what it reads, and the tensors they start from. Iterative: chains are long."""
    nodes: list[_Todo] = []
    tensors: dict[Cell, torch.Tensor] = {}
    done: set[Node] = set()
    stack: list[Cell | _Todo] = [target]
    while stack:
        top = stack.pop()
        if type(top) is _Todo:
            if top.node not in done:
                done.add(top.node)
                nodes.append(top)
            continue
        cell = cast("Cell", top)
        if cell in tensors or cell.node in done:
            continue
        tensor = cell.cached
        if tensor is None and (cell.leaf is not None or cell.holder is not None):
            tensor = cell.held()
        if tensor is not None:
            tensors[cell] = tensor
            continue
        assert cell.node is not None, "a dropped value has no recipe"
        reads = cell.node.reads
        stack.append(_Todo(cell.node, cell, reads))
        stack += reads
    return nodes, tensors


def learn(target: Cell) -> None:
    """Note which ops the value would be made by, without making it."""
    for todo in _order(target)[0]:
        todo.node.note_needed()


def recompute(target: Cell, tally: Tally) -> torch.Tensor:
    """Make a dropped value again; what else was dropped and comes by on the way stays cached while its saves wait."""
    if target.cached is not None:
        return target.cached
    start, tally.running = time.perf_counter(), True
    try:
        with BelowAutograd():
            return _run(target, tally)
    finally:
        tally.running = False
        tally.seconds += time.perf_counter() - start


def _run(target: Cell, tally: Tally) -> torch.Tensor:
    nodes, tensors = _order(target)
    readers = Counter(cell for todo in nodes for cell in todo.reads) if len(nodes) > 1 else Counter()
    owned: set[Cell] = set()
    for node, reached_by, reads in nodes:
        for cell in reads:
            readers[cell] -= 1
        ending = [cell for cell in reads if not readers[cell] and cell in owned and cell is not target] if owned else []
        for cell, tensor in node.replay(reached_by, tensors, {cell for cell in ending if cell.cached is None} if node.written else ()):
            tensors[cell] = tensor
            owned.add(cell)
            if cell.waiting:
                cell.cached = tensor
        for cell in ending:
            tensors.pop(cell, None)
        tally.ops += 1
        node.note_needed()
    return tensors[target]
