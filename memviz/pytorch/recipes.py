"""How a dropped value is made again: the op and arguments that made it, back to values that are held (E2)."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

from memviz.pytorch.compat import below_autograd
from memviz.pytorch.views import View

if TYPE_CHECKING:
    from memviz.core.keys import Key


class Holder(Protocol):
    """Whatever keeps a saved value in its own way and can give it back."""

    def storage(self) -> torch.UntypedStorage | None:
        """The value's storage, or None where it is not held any more."""
        ...


@dataclass(slots=True, eq=False, weakref_slot=True)
class Cell:
    """One version of one storage. ``leaf`` holds what no recipe makes, ``cached`` what has been made again."""

    key: Key | None = None
    nbytes: int = 0
    node: Node | None = None
    leaf: torch.Tensor | None = None
    leaf_version: int | None = None
    """Its version when a recipe first read it."""
    replayable: bool = False
    uninitialised: bool = False
    read: bool = False
    waiting: int = 0
    cached: torch.UntypedStorage | None = None
    holder: Callable[[], Holder | None] = lambda: None

    def hold(self, tensor: torch.Tensor) -> None:
        """Make it a leaf: a tensor that no recipe makes, such as a parameter."""
        self.leaf, self.replayable = tensor, True

    def held(self) -> torch.UntypedStorage | None:
        """Its storage, if that can be had without computing."""
        if self.cached is not None:
            return self.cached
        if self.leaf is not None:
            if self.leaf._version != self.leaf_version:
                msg = (
                    "a tensor that memviz recomputes from was modified in place after the forward pass; call backward before "
                    "you change parameters or inputs, or keep what is computed from them"
                )
                raise RuntimeError(msg)
            return self.leaf.untyped_storage()
        holder = self.holder()
        return None if holder is None else holder.storage()


@dataclass(slots=True, frozen=True)
class Scratch:
    """An argument that the op only writes: a fresh tensor stands in for it (E5: running statistics change once)."""

    size: torch.Size
    dtype: torch.dtype
    device: torch.device

    def make(self) -> torch.Tensor:
        """The stand-in."""
        return torch.zeros(self.size, dtype=self.dtype, device=self.device)


@dataclass(slots=True, eq=False)
class Node:
    """One op call that can run again. ``rng`` is its generator and that generator's state before the call."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reads: tuple[Cell, ...]
    written: tuple[Cell, ...] = ()
    """Versions that the op overwrote: it gets a clone of them."""
    outputs: tuple[tuple[int, weakref.ref[Cell]], ...] = ()
    """Position among the op's tensors, and the cell that it makes there: weak, since the cell holds its node."""
    replaced: tuple[tuple[Cell, weakref.ref[Cell]], ...] = ()
    """For a written version, the version that the write made."""
    rng: tuple[torch.Generator, torch.Tensor] | None = None
    grad: bool = True
    """Whether gradients were enabled: some kernels return more when they are (the workspace of a fused RNN)."""

    def replay(self, storages: dict[Cell, torch.UntypedStorage], last: set[Cell]) -> dict[Cell, torch.UntypedStorage]:
        """Run the op; the storages of the cells it makes. What is in ``last`` may be overwritten instead of cloned."""
        work = dict(storages)
        for cell in self.written:
            work[cell] = storages[cell] if cell in last else storages[cell].clone()

        args, kwargs = _rebuilt(self.args, work), {name: _rebuilt(value, work) for name, value in self.kwargs.items()}
        with torch.set_grad_enabled(self.grad), _generator_at(self.rng):
            result = self.func(*args, **kwargs)
        tensors = tensors_in(result)
        made = [(cell(), tensors[position].untyped_storage()) for position, cell in self.outputs]
        made += [(new(), work[old]) for old, new in self.replaced]
        return {cell: storage for cell, storage in made if cell is not None}


@contextmanager
def _generator_at(rng: tuple[torch.Generator, torch.Tensor] | None) -> Iterator[None]:
    """The generator in the state that it had then, and afterwards in the one that it has now."""
    if rng is None:
        yield
        return
    generator, state = rng
    now = generator.get_state()
    generator.set_state(state)
    try:
        yield
    finally:
        generator.set_state(now)


def _rebuilt(argument: Any, storages: dict[Cell, torch.UntypedStorage]) -> Any:
    # Not a closure: one that calls itself is a reference cycle, and would hold the storages until the garbage collector runs.
    if isinstance(argument, View):
        return argument.on(storages[argument.cell])
    if isinstance(argument, Scratch):
        return argument.make()
    return type(argument)([_rebuilt(part, storages) for part in argument]) if isinstance(argument, list | tuple) else argument


def tensors_in(tree: object) -> list[torch.Tensor]:
    """Every tensor of an op's arguments or results, in order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    parts = tree if isinstance(tree, (list, tuple)) else tree.values() if isinstance(tree, dict) else ()
    found: list[torch.Tensor] = []
    for part in parts:
        kind = type(part)
        if kind in _PLAIN_TENSORS:  # isinstance of Tensor asks its metaclass, in Python.
            found.append(part)
        elif kind not in _NO_TENSORS:
            found += tensors_in(part)
    return found


_PLAIN_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_NO_TENSORS = frozenset({type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format})


@dataclass(slots=True)
class Tally:
    """What recomputing has cost so far; ``running`` while it goes on."""

    ops: int = 0
    seconds: float = 0.0
    running: bool = False


def _order(target: Cell) -> tuple[list[Node], dict[Cell, torch.UntypedStorage]]:
    """The nodes to run for a value, each after what it reads, and the storages they start from. Iterative: chains are long."""
    nodes: list[Node] = []
    storages: dict[Cell, torch.UntypedStorage] = {}
    done: set[int] = set()
    stack: list[tuple[Cell, bool]] = [(target, False)]
    while stack:
        cell, ready = stack.pop()
        if ready:
            if cell.node is not None and id(cell.node) not in done:
                done.add(id(cell.node))
                nodes.append(cell.node)
            continue
        if cell in storages or (cell.node is not None and id(cell.node) in done):
            continue
        storage = cell.held()
        if storage is not None:
            storages[cell] = storage
            continue
        assert cell.node is not None, "a dropped value has no recipe"
        stack.append((cell, True))
        stack.extend((read, False) for read in cell.node.reads)
    return nodes, storages


def recompute(target: Cell, tally: Tally) -> torch.UntypedStorage:
    """Make a dropped value again; what else was dropped and comes by on the way stays cached while its saves wait."""
    start, tally.running = time.perf_counter(), True
    try:
        with below_autograd():
            return _run(target, tally)
    finally:
        tally.running = False
        tally.seconds += time.perf_counter() - start


def _run(target: Cell, tally: Tally) -> torch.UntypedStorage:
    nodes, storages = _order(target)
    last_reader = {cell: node for node in nodes for cell in node.reads}
    owned: set[Cell] = set()
    for node in nodes:
        ending = {cell for cell in node.reads if last_reader[cell] is node and cell in owned and cell is not target}
        made = node.replay(storages, {cell for cell in ending if cell.cached is None})
        tally.ops += 1
        for cell in ending:
            del storages[cell]
        for cell, storage in made.items():
            storages[cell] = storage
            owned.add(cell)
            if cell.waiting:
                cell.cached = storage
    return storages[target]
