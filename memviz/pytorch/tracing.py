"""Sees each forward op and remembers how its outputs are made (E1, E2, E5)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memviz.pytorch import compat
from memviz.pytorch.recipes import NO_TENSORS, PLAIN_TENSORS, Cell, Node, Reference, Scratch, Tally, tensors_in
from memviz.pytorch.saved import Dropped
from memviz.pytorch.versions import Entry, Versions
from memviz.pytorch.views import Window

if TYPE_CHECKING:
    from collections.abc import Collection

    from memviz.pytorch.scope import Frame, Scope

_OpOverload, _graph_task, _traits_of = torch._ops.OpOverload, compat.graph_task, compat.known_traits.get


class Tracer(TorchDispatchMode):
    """The recipes of a forward pass, by the storages that they fill.

    Where it is known which ops something is recomputed from (``Frame.wanted``), only those get a recipe; what one of them reads that
    no recipe makes is held with it. A write is seen whether it is wanted or not.

    Blind spots: writes that bypass torch (numpy views of an activation) are not seen.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # Else every call goes through one more wrapper, against compiling what is below, which nothing here does.

    def __init__(self, scope: Scope, tally: Tally) -> None:
        super().__init__()
        self._stack, self._tally = scope.stack, tally
        self._versions = Versions(scope)
        self._overwritten: list[Dropped] = []
        self._busy = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._overwritten:
            for handle in self._overwritten:  # Version counters move when the op that wrote has returned, so only now.
                handle.settle()
            self._overwritten.clear()
        if self._busy or _graph_task() != -1 or type(func) is not _OpOverload:
            return func(*args, **kwargs) if kwargs else func(*args)
        traits = _traits_of(id(func)) or compat.traits(func)
        frame = self._stack[-1]
        name, calls, nth = traits.name, frame.wanted, 0
        if calls is None or name in calls:
            nth = frame.counts.get(name, 0)
            frame.counts[name] = nth + 1
            wanted = calls is None or nth in calls[name]
        else:
            wanted = False
        if not wanted and (not traits.writes or self._writes_unseen(traits, args)) and not traits.normalises:
            return func(*args, **kwargs) if kwargs else func(*args)
        if traits.simple:
            result = func(*args, **kwargs) if kwargs else func(*args)
            if traits.view:
                for tensor in tensors_in(args):  # What shows a leaf in another way is none itself.
                    self._versions.of(tensor)
            else:
                self._remember(func, traits, args, kwargs, result, frame, nth)
            return result
        if wanted and traits.updates:
            entry = self._versions.entry(args[0])
            if entry is not None and entry.cell.node is not None and entry.dropped is None:
                return self._update(entry, func, traits, args, kwargs, frame, nth)
        return self._watch(func, traits, args, kwargs or {}, frame, nth, wanted=wanted)

    def cell(self, tensor: torch.Tensor) -> Cell | None:
        """The version that a plain tensor's storage is at, if an op that was seen has made it."""
        cell = self._versions.known(tensor)
        return None if cell is None or cell.frame is None else cell

    def drop(self, tensor: torch.Tensor, cell: Cell) -> Dropped:
        """A handle to have the tensor made again by."""
        handle = Dropped(tensor, cell, self._tally)
        self._versions.note_dropped(tensor, handle)
        return handle

    def finish(self) -> None:
        """Forward is over."""
        self._overwritten.clear()
        self._versions.clear()

    def _writes_unseen(self, traits: compat.Traits, args: Any) -> bool:
        """Whether the op writes to its first argument alone, of which nothing is known."""
        return traits.in_place and self._versions.known(args[0]) is None

    def _remember(self, func: Any, traits: compat.Traits, args: Any, kwargs: Any, result: Any, frame: Frame, nth: int) -> None:
        """The recipe of an op that has run and wrote nothing but its results."""
        node = self._recipe(func, traits, args, kwargs, frame, nth)
        single = type(result) is torch.Tensor
        made = []
        for position, tensor in enumerate((result,) if single else tensors_in(result)):
            if not compat.plain(tensor) or self._versions.known(tensor) is not None:
                continue
            cell = Cell()
            cell.frame, cell.op, cell.nth, cell.node = frame, traits.name, nth, node
            if position:
                cell.output = position
            self._versions.add(tensor, cell)
            if not single:
                made.append((position, weakref.ref(cell)))
        if node is not None and not single:
            node.outputs = tuple(made)

    def _update(self, entry: Entry, func: Any, traits: compat.Traits, args: Any, kwargs: Any, frame: Frame, nth: int) -> Any:
        """Run an op that changes what a recipe makes, of which nothing was dropped: as ``_watch`` does, in fewer steps."""
        old, node = entry.cell, self._recipe(func, traits, args, kwargs, frame, nth)
        result = func(*args, **kwargs) if kwargs else func(*args)
        old.holder = None
        new = entry.cell = Cell()
        new.frame, new.op, new.nth, new.node = frame, traits.name, nth, node
        if node is None:
            new.blank = True
        else:
            node.written, node.outputs, node.replaced = (old,), (), ((old, weakref.ref(new)),)
        return result

    def _recipe(self, func: Any, traits: compat.Traits, args: Any, kwargs: Any, frame: Frame, nth: int) -> Node | None:
        """The recipe of an op that writes nothing it does not read; None if it can't run again."""
        reads: list[Cell] = []
        references = [self._refer(argument, reads) for argument in args]
        if OPAQUE in references:
            return None
        node = Node(func, traits.name, references, reads, frame, nth)
        if kwargs:
            node.kwargs = {name: self._refer(value, reads) for name, value in kwargs.items()}
            if OPAQUE in node.kwargs.values():
                return None
        return node

    def _refer(self, argument: Any, reads: list[Cell], scratch: Collection[int] = (), blanks: Collection[int] = ()) -> Any:
        """An argument with a reference in the place of each tensor, of which the cells are added to ``reads``.

        OPAQUE is what can't be had again. ``scratch`` are the ids of the tensors that are only written, ``blanks`` of those that need
        not have anything in them.
        """
        kind = type(argument)
        if kind in NO_TENSORS:
            return argument
        if kind in PLAIN_TENSORS:
            if scratch and id(argument) in scratch:
                return Scratch(argument.size(), argument.dtype, argument.device)
            cell = self._versions.of(argument)
            if cell.node is None:
                if cell.leaf is None:
                    return OPAQUE
                if cell.leaf_version is None:
                    cell.leaf_version = cell.leaf._version
            if not compat.plain(argument) or (cell.uninitialised and id(argument) not in blanks):
                return OPAQUE
            cell.read = True
            reads.append(cell)
            return Reference(cell, Window.of(argument))
        if kind is list or kind is tuple:
            parts = [self._refer(part, reads, scratch, blanks) for part in argument]
            return OPAQUE if OPAQUE in parts else kind(parts)
        return OPAQUE if isinstance(argument, torch.Tensor) else argument

    def _watch(self, func: Any, traits: compat.Traits, args: Any, kwargs: Any, frame: Frame, nth: int, *, wanted: bool) -> Any:
        """Run an op that writes, draws random numbers or makes a tensor out of nothing."""
        written = compat.written(traits, args, kwargs)
        node = self._node(func, traits, args, kwargs, written, frame, nth) if wanted and traits.replayable else None
        self._protect(written)
        result = func(*args, **kwargs)
        self._note(traits, node, written, args, kwargs, result, frame, nth, wanted=wanted)
        return result

    def _node(
        self, func: Any, traits: compat.Traits, args: Any, kwargs: Any, written: list[torch.Tensor], frame: Frame, nth: int
    ) -> Node | None:
        """The recipe of an op, taken before it runs; None if it can't run again."""
        scratch = compat.only_written(traits, args)
        overwritten = [tensor for tensor in written if id(tensor) not in scratch]
        blanks = {id(tensor) for tensor in self._blanks(traits, args, overwritten)}
        reads: list[Cell] = []
        references = [self._refer(argument, reads, scratch, blanks) for argument in args]
        named = {name: self._refer(value, reads, scratch, blanks) for name, value in kwargs.items()}
        if OPAQUE in references or OPAQUE in named.values() or not (reads or traits.random):
            return None
        node = Node(func, traits.name, references, reads, frame, nth)
        if named:
            node.kwargs = named
        node.written = tuple(dict.fromkeys(map(self._versions.of, overwritten)))
        if traits.random:
            device = next((tensor.device for tensor in tensors_in(args)), kwargs.get("device"))
            generator = _generator(kwargs, device)
            if generator is None:
                return None
            node.rng = (generator, generator.get_state())
        return node

    @staticmethod
    def _blanks(traits: compat.Traits, args: Any, overwritten: list[torch.Tensor]) -> list[torch.Tensor]:
        """The arguments of which the op does not read what they show."""
        if traits.empty:
            return tensors_in(args)
        filled = overwritten if traits.name in compat.FILLING else []
        return [tensor for tensor in filled if tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()]

    def _protect(self, written: list[torch.Tensor]) -> None:
        """Keep a copy of a leaf that recipes have read before it is overwritten (E5)."""
        for tensor in written:
            cell = self._versions.known(tensor)
            if cell is not None and cell.leaf is not None and cell.read and tensor.layout is torch.strided:
                self._busy = True
                flat = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
                cell.leaf = flat.clone()
                cell.leaf_version = cell.leaf._version
                self._busy = False

    def _note(
        self,
        traits: compat.Traits,
        node: Node | None,
        written: list[torch.Tensor],
        args: Any,
        kwargs: Any,
        result: Any,
        frame: Frame,
        nth: int,
        *,
        wanted: bool,
    ) -> None:
        """Give each storage that the op made, or wrote to, its new version."""
        arguments = tensors_in(args) + tensors_in(kwargs)
        seen = {tensor.untyped_storage()._cdata for tensor in arguments if tensor.layout is torch.strided}
        for tensor in written:
            self._overwrite(tensor, traits, node, frame, nth)
        made = []
        for position, tensor in enumerate(tensors_in(result) if wanted else ()):
            if tensor.layout is not torch.strided or (storage := tensor.untyped_storage())._cdata in seen:
                continue
            seen.add(storage._cdata)
            cell = Cell()
            cell.frame, cell.op, cell.output, cell.nth = frame, traits.name, position, nth
            if compat.plain(tensor):
                cell.node = node
                cell.uninitialised = node is not None and traits.empty
                if not arguments and traits.factory:
                    cell.leaf = compat.sibling(tensor)  # Others may write to it out of sight before it is used.
            self._versions.set(tensor, cell)
            made.append((position, weakref.ref(cell)))
        if node is not None:
            node.outputs = tuple(made)

    def _overwrite(self, tensor: torch.Tensor, traits: compat.Traits, node: Node | None, frame: Frame, nth: int) -> None:
        old = self._versions.known(tensor)
        if old is None:
            if not self._versions.holding:
                old = self._versions.of(tensor)
            else:
                return  # Nobody has read it, and who does so from now on holds it as it is then.
        self._busy = True
        for handle in self._versions.dropped(tensor):
            handle.overwritten(tensor)
            self._overwritten.append(handle)
        self._busy = False
        # Siblings of an unsafe_chunk share a storage but no version counter: what holds the old version can't tell (E5).
        old.holder = None
        new = Cell()
        new.blank = node is None
        if old.frame is None:  # It existed before, so it stays out of the plan's reach; what it shows now is held like the rest of it.
            if old.leaf is not None and compat.plain(tensor) and tensor.is_leaf and not torch.is_grad_enabled():
                new.leaf = tensor
        else:
            new.frame, new.op, new.nth = frame, traits.name, nth
            if node is not None and old in node.written:
                new.node = node
                node.replaced = (*node.replaced, (old, weakref.ref(new)))
        if old.leaf is tensor or not old.read:
            old.leaf = None
        self._versions.set(tensor, new)


class _Opaque:
    """Stands for an argument that can't be had again."""


OPAQUE = _Opaque()


def _generator(kwargs: dict[str, Any], device: torch.device | None) -> torch.Generator | None:
    given = kwargs.get("generator")
    if given is not None:
        return given
    device = torch.get_default_device() if device is None else torch.device(device)
    if device.type == "cpu":
        return torch.default_generator
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else None
