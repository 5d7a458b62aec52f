"""A plan, applied to whatever runs inside a ``with`` block: the engine (E1, E2, E5, E6)."""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memviz.core.keys import Key
from memviz.core.plan import Action, Plan, Swap
from memviz.pytorch import compat
from memviz.pytorch.recipes import Cell, Node, Scratch, Tally, tensors_in
from memviz.pytorch.reversible import ReversibleSequence, reversing
from memviz.pytorch.saved import Away, Dropped, Kept, Swapped
from memviz.pytorch.scope import Scope
from memviz.pytorch.swapping import Slot, Swapper
from memviz.pytorch.transport import transport_for
from memviz.pytorch.versions import Live, Versions
from memviz.pytorch.views import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn


def reversal_key(path: str) -> Key:
    """The key by which a plan's rules say whether the reversible sequence at this path is reversed."""
    return Key(module=path, op="reverse", output=0, call=0, nth=0)


class Engine(TorchDispatchMode):
    """Sees each forward op, remembers how its outputs are made, and does with each saved tensor what the plan says.

    Blind spots: writes that bypass torch (numpy views of an activation) are not seen.

    Args:
        plan: What to do.
        modules: Names of the outermost modules.
        limit: Bytes that count as full where the plan's swap gives none.
        live: Bytes on the device now; what the engine has seen and ``resident`` ones where left out.
        resident: Bytes that the engine does not see, such as optimizer state.
        on_save: Told of each tensor that autograd saves. Without it, a plan that keeps everything costs nothing.
    """

    def __init__(
        self,
        plan: Plan,
        modules: dict[str, nn.Module] | None = None,
        *,
        limit: int | None = None,
        live: Callable[[], int] | None = None,
        resident: int = 0,
        on_save: Callable[[torch.Tensor], None] | None = None,
    ) -> None:
        super().__init__()
        self._idle = plan.keeps_everything and on_save is None
        self.plan, self.scope, self.tally, self.on_save = plan, Scope(modules), Tally(), on_save or _ignore
        self.swapper: Swapper | None = None
        seen = Live(resident)
        self._versions, self._live, self._limit = Versions(seen), live or seen, limit
        actions = {rule.action for rule in plan.rules}
        self._tracing, self._reversing = Action.RECOMPUTE in actions, Action.REVERSE in actions
        self._swaps = plan.swap is not None or Action.SWAP in actions
        self._slots: weakref.WeakKeyDictionary[torch.UntypedStorage, tuple[weakref.ref[Cell], weakref.ref[Slot]]] = (
            weakref.WeakKeyDictionary()
        )
        self._busy = False
        self._overwritten: list[Away] = []
        self._entered: ExitStack | None = None

    def __enter__(self) -> Self:
        if self._idle:
            return self
        with ExitStack() as stack:
            stack.enter_context(self.scope)
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack))
            if self._reversing:
                stack.enter_context(reversing(self._reverses))
            super().__enter__()
            stack.push(super().__exit__)
            self._entered = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        if self._idle:
            return
        assert self._entered is not None
        self._relieve()
        if self.swapper is not None:
            self.swapper.finish()
        self._overwritten.clear()
        self._entered.__exit__(*error)
        self._entered = None  # It holds bound methods: a cycle that would keep the swapper's files until the next collection.
        self._versions.clear()

    def _reverses(self, sequence: ReversibleSequence) -> bool:
        return self.plan.action(reversal_key(self.scope.paths.get(id(sequence), ""))) is Action.REVERSE

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._overwritten:
            for handle in self._overwritten:  # Version counters move when the op that wrote has returned, so only now.
                handle.settle()
            self._overwritten.clear()
        if self._busy or compat.in_backward() or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        traits = compat.traits(func)
        written = compat.written(traits, args, kwargs)
        node = self._node(func, traits, args, kwargs, written) if self._tracing else None
        if self._tracing:
            self._protect(written)
        result = func(*args, **kwargs)
        self._note(traits, node, written, args, kwargs, result)
        self._relieve()
        return result

    def _node(self, func: Any, traits: compat.Traits, args: Any, kwargs: Any, written: list[torch.Tensor]) -> Node | None:
        """The recipe of an op, taken before it runs; None if it can't run again."""
        tensors = tensors_in(args) + tensors_in(kwargs)
        scratch = compat.only_written(traits, args)
        overwritten = [tensor for tensor in written if id(tensor) not in scratch]
        tensors = [tensor for tensor in tensors if id(tensor) not in scratch]
        if not traits.replayable or not tensors or not all(map(compat.plain, tensors)):
            return None
        if not all(self._readable(tensor, traits, overwritten) for tensor in tensors):
            return None
        reads = tuple(dict.fromkeys(map(self._read, tensors)))
        node = Node(func, self._refer(args, scratch), {name: self._refer(value, scratch) for name, value in kwargs.items()}, reads)
        node.written = tuple(dict.fromkeys(map(self._versions.of, overwritten)))
        node.grad = torch.is_grad_enabled()
        if traits.random:
            generator = _generator(kwargs, tensors[0].device)
            if generator is None:
                return None
            node.rng = (generator, generator.get_state())
        return node

    def _readable(self, tensor: torch.Tensor, traits: compat.Traits, overwritten: list[torch.Tensor]) -> bool:
        """Whether a recipe may read what the tensor shows: it can be had again, and something has been written there."""
        cell = self._versions.of(tensor)
        filled = any(tensor is other for other in overwritten) and traits.name in compat.FILLING
        covered = filled and tensor.numel() * tensor.element_size() == cell.nbytes
        return cell.replayable and (not cell.uninitialised or covered or traits.name.startswith("aten::empty"))

    def _read(self, tensor: torch.Tensor) -> Cell:
        cell = self._versions.of(tensor)
        cell.read = True
        if cell.leaf is not None and cell.leaf_version is None:
            cell.leaf_version = cell.leaf._version
        return cell

    def _refer(self, argument: Any, scratch: set[int]) -> Any:
        """An argument with a reference in the place of each tensor."""
        if isinstance(argument, torch.Tensor):
            if id(argument) in scratch:
                return Scratch(argument.size(), argument.dtype, argument.device)
            return View.of(argument, self._versions.of(argument))
        return type(argument)([self._refer(part, scratch) for part in argument]) if isinstance(argument, list | tuple) else argument

    def _protect(self, written: list[torch.Tensor]) -> None:
        """Keep a copy of a leaf that recipes have read before it is overwritten (E5)."""
        for tensor in written:
            cell = self._versions.of(tensor)
            if cell.leaf is not None and cell.read and tensor.layout is torch.strided:
                self._busy = True
                flat = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
                cell.leaf = flat.clone()
                cell.leaf_version = cell.leaf._version
                self._busy = False

    def _note(self, traits: compat.Traits, node: Node | None, written: list[torch.Tensor], args: Any, kwargs: Any, result: Any) -> None:
        """Give each storage that the op made, or wrote to, its new version."""
        nth = self.scope.frame.count(traits.name)
        arguments = tensors_in(args) + tensors_in(kwargs)
        seen = {tensor.untyped_storage()._cdata for tensor in arguments if tensor.layout is torch.strided}
        for tensor in written:
            self._overwrite(tensor, traits, node, nth)
        made = []
        for position, tensor in enumerate(tensors_in(result)):
            if tensor.layout is not torch.strided or (storage := tensor.untyped_storage())._cdata in seen:
                continue
            seen.add(storage._cdata)
            cell = Cell(key=self.scope.key(traits.name, position, nth), nbytes=storage.nbytes(), node=node)
            cell.replayable = node is not None and compat.plain(tensor)
            cell.uninitialised = cell.replayable and traits.name.startswith(("aten::empty", "aten::new_empty"))
            if self._tracing and not arguments and traits.factory and compat.plain(tensor):
                cell.hold(tensor)  # Others may write to it out of sight before it is used.
            self._versions.set(tensor, cell)
            made.append((position, weakref.ref(cell)))
        if node is not None:
            node.outputs = tuple(made)

    def _overwrite(self, tensor: torch.Tensor, traits: compat.Traits, node: Node | None, nth: int) -> None:
        old = self._versions.of(tensor)
        self._busy = True
        for handle in self._versions.saved(tensor):
            handle.overwritten(tensor)
            self._overwritten.append(handle)
        self._busy = False
        # Siblings of an unsafe_chunk share a storage but no version counter: what holds the old version can't tell (E5).
        old.holder = lambda: None
        new = Cell(key=self.scope.key(traits.name, 0, nth), nbytes=old.nbytes)
        if old.key is None:
            new.key = None  # It existed before, so it stays out of the plan's reach; what it shows now is held like the rest of it.
            if old.leaf is not None and compat.plain(tensor) and tensor.is_leaf and not torch.is_grad_enabled():
                new.hold(tensor)
        elif node is not None and old in node.written:
            new.node, new.replayable = node, True
            node.replaced = (*node.replaced, (old, weakref.ref(new)))
        if old.leaf is tensor or not old.read:
            old.leaf = None
        self._versions.set(tensor, new)

    def _relieve(self) -> None:
        if self.swapper is not None:
            self._busy = True
            try:
                self.swapper.relieve()
            finally:
                self._busy = False

    def _pack(self, tensor: torch.Tensor) -> Kept | Away:
        if self._busy or not compat.plain(tensor):
            return Kept(tensor)
        self.on_save(tensor)
        cell = self._versions.known(tensor)
        if cell is None or cell.key is None:
            return Kept(tensor)
        action = self.plan.action(cell.key)
        if action is Action.RECOMPUTE and cell.node is not None and cell.replayable and not cell.uninitialised:
            return self._away(tensor, lambda: Dropped(tensor, View.of(tensor, cell), self.tally))
        settings = self.plan.swap or Swap()
        if self._swaps and cell.nbytes >= int(settings.min_bytes) and (action is Action.SWAP or (action is Action.KEEP and self.plan.swap)):
            return self._offer(tensor, cell, settings, now=action is Action.SWAP)
        kept = Kept(tensor)
        cell.holder = weakref.ref(kept)
        return kept

    def _offer(self, tensor: torch.Tensor, cell: Cell, settings: Swap, *, now: bool) -> Away:
        self._busy = True
        try:
            if self.swapper is None:
                limit = int(settings.limit or self._limit or compat.device_memory(tensor.device))
                self.swapper = Swapper(settings, limit, self._live, transport_for(tensor.device, settings.target))
            slot = self._slot(tensor, cell)
            if slot is None:
                slot = self.swapper.add(tensor, str(cell.key), now=now)
                self._slots[tensor.untyped_storage()] = (weakref.ref(cell), weakref.ref(slot))
            cell.holder = weakref.ref(slot)
        finally:
            self._busy = False
        return self._away(tensor, lambda: Swapped(tensor, View.of(tensor, cell), slot))

    def _away(self, tensor: torch.Tensor, make: Callable[[], Away]) -> Away:
        self._busy = True
        try:
            handle = make()
        finally:
            self._busy = False
        self._versions.note_saved(tensor, handle)
        return handle

    def _slot(self, tensor: torch.Tensor, cell: Cell) -> Slot | None:
        """The slot that the storage has, if it still shows what is saved now: an unsent one always does."""
        of, found = self._slots.get(tensor.untyped_storage(), (None, None))
        slot = found() if found is not None else None
        if slot is None or of is None or (slot.parcel is not None and of() is not cell):
            return None
        if slot.parcel is None:
            slot.sources.append((tensor, tensor._version))
            self._slots[tensor.untyped_storage()] = (weakref.ref(cell), weakref.ref(slot))
        return slot


def _ignore(_tensor: torch.Tensor) -> None:
    """Nobody wants to know."""


def _unpack(saved: Kept | Away) -> torch.Tensor:
    return saved.unpack()


def _generator(kwargs: dict[str, Any], device: torch.device) -> torch.Generator | None:
    given = kwargs.get("generator")
    if given is not None:
        return given
    if device.type == "cpu":
        return torch.default_generator
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else None


def apply(plan: Plan, model: nn.Module | None = None) -> Engine:
    """Apply a plan to the forward passes inside a ``with`` block; backward may come inside or after it.

    Args:
        plan: What to recompute, swap and reverse. Gradients are those of the unplanned step, bit for bit (E5); reversed
            blocks are rebuilt up to rounding (E8).
        model: Names the modules that rules match; without it the first outermost module that is called is the root.

    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    >>> with apply(Plan(rules={"1": "recompute"})):
    ...     loss = model(torch.ones(2, 4)).sum()
    >>> loss.backward()
    """
    if not isinstance(plan, Plan):
        msg = f"apply takes a Plan, as in mv.Plan(rules={{'blocks.*:relu': 'recompute'}}), not {plan!r}"
        raise ValueError(msg)
    return Engine(plan, {"": model} if model is not None else None)
