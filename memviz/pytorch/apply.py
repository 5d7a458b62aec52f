"""A plan, applied to whatever runs inside a ``with`` block: the engine (E1, E2, E5, E6)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memviz.core.plan import Action, Plan, Swap
from memviz.pytorch import compat
from memviz.pytorch.recipes import Cell, Node, Scratch, Tally, View, recompute, tensors_in
from memviz.pytorch.scope import Scope
from memviz.pytorch.swapping import Slot, Swapper

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn


class Kept:
    """A saved tensor that stays. It is checked as autograd checks it: a write after the save is an error."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.version = None if tensor.is_inference() else tensor._version

    def storage(self) -> torch.UntypedStorage | None:
        """Its storage, unless it has been overwritten."""
        return self.tensor.untyped_storage() if self.tensor._version == self.version else None

    def unpack(self) -> torch.Tensor:
        """The tensor; RuntimeError if it was modified in place since it was saved."""
        if self.version is not None and self.tensor._version != self.version:
            msg = (
                f"one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{tuple(self.tensor.shape)} is at version {self.tensor._version}; expected version {self.version}"
            )
            raise RuntimeError(msg)
        return self.tensor


class Swapped:
    """A saved tensor whose value may leave the device."""

    __slots__ = ("slot", "view")

    def __init__(self, slot: Slot, view: View) -> None:
        self.slot = slot
        self.view = view

    def unpack(self) -> torch.Tensor:
        """The tensor, fetched if it has left; RuntimeError if it was modified in place since it was saved."""
        source = self.slot.source
        if source is not None and source._version != self.slot.version:
            Kept.unpack(_stale(source, self.slot.version))
        return self.view.on(self.slot.storage())


def _stale(tensor: torch.Tensor, version: int) -> Kept:
    kept = Kept(tensor)
    kept.version = version
    return kept


class Dropped:
    """A saved tensor that is made again when its gradient needs it."""

    __slots__ = ("tally", "unpacked", "view")

    def __init__(self, view: View, tally: Tally) -> None:
        self.view = view
        self.tally = tally
        self.unpacked = False
        view.cell.waiting += 1

    def unpack(self) -> torch.Tensor:
        """The tensor, recomputed."""
        tensor = self.view.on(recompute(self.view.cell, self.tally))
        self._settle()
        return tensor

    def _settle(self) -> None:
        if not self.unpacked:
            self.unpacked = True
            self.view.cell.waiting -= 1
            if not self.view.cell.waiting:
                self.view.cell.cached = None

    def __del__(self) -> None:
        self._settle()


class Engine(TorchDispatchMode):
    """Sees each forward op, remembers how its outputs are made, and does with each saved tensor what the plan says.

    Blind spots: writes that bypass torch (numpy views of an activation) are not seen.
    """

    def __init__(
        self,
        plan: Plan,
        modules: dict[str, nn.Module] | None = None,
        *,
        limit: int | None = None,
        resident: int = 0,
        on_save: Callable[[torch.Tensor], None] = lambda _tensor: None,
    ) -> None:
        super().__init__()
        self.plan = plan
        self.scope = Scope(modules)
        self.tally = Tally()
        self.on_save = on_save
        self.swapper: Swapper | None = None
        self._limit = limit
        self._live = self._tracked_live
        self._tracked = resident
        self._cells: dict[int, tuple[weakref.ref[torch.UntypedStorage], Cell]] = {}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda saved: saved.unpack())
        self._tracing = any(rule.action is Action.RECOMPUTE for rule in plan.rules)
        self._swaps = plan.swap is not None or any(rule.action is Action.SWAP for rule in plan.rules)
        self._busy = False

    def __enter__(self) -> Self:
        self.scope.__enter__()
        self._hooks.__enter__()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._hooks.__exit__(*error)
        self.scope.__exit__(*error)
        self._cells.clear()

    def use_live(self, live: Callable[[], int]) -> None:
        """Ask a meter how many bytes are live, instead of counting the storages that the engine has seen."""
        self._live = live

    def _tracked_live(self) -> int:
        return self._tracked

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._busy or compat.in_backward() or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        traits = compat.traits(func)
        written = self._written(traits, args, kwargs)
        node = self._node(func, traits, args, kwargs, written)
        result = func(*args, **kwargs)
        self._note(traits, node, written, args, kwargs, result)
        return result

    # what an op reads and writes

    def _written(self, traits: compat.Traits, args: Any, kwargs: Any) -> list[torch.Tensor]:
        found = [
            tensor
            for where in traits.writes
            for tensor in tensors_in(kwargs.get(where) if isinstance(where, str) else (args[where] if where < len(args) else None))
        ]
        if traits.name in compat.BATCH_NORMS:
            found += [args[at] for at in compat.RUNNING_STATISTICS if _trains(traits, args) and args[at] is not None]
        return found

    def _cell(self, tensor: torch.Tensor) -> Cell:
        """The version of the storage that the tensor shows now; what no seen op made becomes a leaf, or opaque."""
        storage = tensor.untyped_storage()
        known = self._cells.get(storage._cdata)
        if known is not None and known[0]() is storage:
            return known[1]
        cell = Cell(nbytes=storage.nbytes())
        if compat.plain(tensor) and tensor.is_leaf:
            cell.leaf, cell.replayable = tensor, True
        self._track(storage, cell)
        return cell

    def _track(self, storage: torch.UntypedStorage, cell: Cell) -> None:
        name = storage._cdata
        known = self._cells.get(name)
        if known is None or known[0]() is not storage:
            self._tracked += cell.nbytes
            nbytes, cells, engine = cell.nbytes, self._cells, weakref.ref(self)

            def gone(reference: object) -> None:
                if name in cells and cells[name][0] is reference:
                    del cells[name]
                if (alive := engine()) is not None:
                    alive._tracked -= nbytes

            reference = weakref.ref(storage, gone)
        else:
            reference = known[0]
        self._cells[name] = (reference, cell)

    def _node(self, func: Any, traits: compat.Traits, args: Any, kwargs: Any, written: list[torch.Tensor]) -> Node | None:
        """The recipe of an op, taken before it runs; None if it can't run again."""
        if not self._tracing:
            return None
        tensors = tensors_in(args) + tensors_in(kwargs)
        scratch = (
            {id(args[at]) for at in compat.RUNNING_STATISTICS if args[at] is not None}
            if traits.name in compat.BATCH_NORMS and _trains(traits, args)
            else set()
        )
        self._protect([tensor for tensor in written if id(tensor) not in scratch])
        if not traits.replayable or not tensors or not all(map(compat.plain, tensors)):
            return None
        reads: dict[Cell, None] = {}
        written_ids = {id(tensor) for tensor in written} - scratch
        for tensor in tensors:
            if id(tensor) in scratch:
                continue
            cell = self._cell(tensor)
            covered = id(tensor) in written_ids and traits.name in compat.FILLING and tensor.numel() * tensor.element_size() == cell.nbytes
            if not cell.replayable or (cell.uninitialised and not covered and not traits.name.startswith("aten::empty")):
                return None
            cell.read = True
            if cell.leaf is not None and cell.leaf_version is None:
                cell.leaf_version = cell.leaf._version
            reads[cell] = None

        node = Node(func, self._refer(args, scratch), {name: self._refer(value, scratch) for name, value in kwargs.items()}, tuple(reads))
        node.written = tuple({self._cell(tensor): None for tensor in written if id(tensor) not in scratch})
        if traits.random:
            generator = _generator(kwargs, tensors[0].device)
            if generator is None:
                return None
            node.rng = (generator, generator.get_state())
        return node

    def _refer(self, argument: Any, scratch: set[int]) -> Any:
        """An argument with a reference in the place of each tensor."""
        if isinstance(argument, torch.Tensor):
            if id(argument) in scratch:
                return Scratch(argument.size(), argument.dtype, argument.device)
            return View.of(argument, self._cell(argument))
        return type(argument)([self._refer(part, scratch) for part in argument]) if isinstance(argument, list | tuple) else argument

    def _protect(self, written: list[torch.Tensor]) -> None:
        """Keep a copy of a leaf that recipes have read before it is overwritten (E5)."""
        for tensor in written:
            cell = self._cell(tensor)
            if cell.leaf is not None and cell.read:
                self._busy = True
                flat = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
                cell.leaf = flat.clone()
                cell.leaf_version = cell.leaf._version
                self._busy = False

    def _note(self, traits: compat.Traits, node: Node | None, written: list[torch.Tensor], args: Any, kwargs: Any, result: Any) -> None:
        """Give each storage that the op made, or wrote to, its new version."""
        nth = self.scope.frame.count(traits.name)
        seen = {tensor.untyped_storage()._cdata for tensor in tensors_in(args) + tensors_in(kwargs)}
        for tensor in written:
            self._overwrite(tensor, traits, node, nth)
        made = []
        for position, tensor in enumerate(tensors_in(result)):
            storage = tensor.untyped_storage()
            if storage._cdata in seen:
                continue
            seen.add(storage._cdata)
            cell = Cell(key=self.scope.key(traits.name, position, nth), nbytes=storage.nbytes(), node=node)
            cell.replayable = node is not None and compat.plain(tensor)
            cell.uninitialised = cell.replayable and traits.name.startswith(("aten::empty", "aten::new_empty"))
            if node is None and self._tracing and traits.replayable and not traits.random and not tensors_in(args) + tensors_in(kwargs):
                self._leave(cell, tensor, traits)
            self._track(storage, cell)
            made.append((position, cell))
        if node is not None:
            node.outputs = tuple(made)

    def _leave(self, cell: Cell, tensor: torch.Tensor, traits: compat.Traits) -> None:
        """Hold what a factory made: others may write to it out of sight before it is used."""
        if compat.plain(tensor) and not traits.name.startswith("aten::empty"):
            cell.leaf, cell.replayable = tensor, True

    def _overwrite(self, tensor: torch.Tensor, traits: compat.Traits, node: Node | None, nth: int) -> None:
        storage = tensor.untyped_storage()
        old = self._cell(tensor)
        # Siblings of an unsafe_chunk share a storage but no version counter: what holds the old version can't tell (E5).
        old.holder = lambda: None
        new = Cell(key=self.scope.key(traits.name, 0, nth), nbytes=storage.nbytes())
        if old.key is None or node is None or old not in node.written:
            new.key = old.key
            if old.leaf is not None and old.key is None and compat.plain(tensor) and tensor.is_leaf and not torch.is_grad_enabled():
                new.leaf, new.replayable = tensor, True
        else:
            new.node, new.replayable = node, True
            node.replaced = (*node.replaced, (old, new))
        if old.leaf is tensor or not old.read:
            old.leaf = None
        self._track(storage, new)

    # what autograd saves

    def _pack(self, tensor: torch.Tensor) -> Kept | Swapped | Dropped:
        if self._busy or not compat.plain(tensor):
            return Kept(tensor)
        self.on_save(tensor)
        storage = tensor.untyped_storage()
        known = self._cells.get(storage._cdata)
        if known is None or known[0]() is not storage or known[1].key is None:
            return Kept(tensor)
        cell = known[1]
        action = self.plan.action(cell.key)
        if action is Action.RECOMPUTE and cell.node is not None and cell.replayable and not cell.uninitialised:
            return Dropped(View.of(tensor, cell), self.tally)
        if self._swaps and action in (Action.KEEP, Action.SWAP):
            return self._offer(tensor, cell, now=action is Action.SWAP)
        kept = Kept(tensor)
        cell.holder = weakref.ref(kept)
        return kept

    def _offer(self, tensor: torch.Tensor, cell: Cell, *, now: bool) -> Kept | Swapped:
        settings = self.plan.swap or Swap()
        if cell.nbytes < settings.min_bytes or (self.plan.swap is None and not now):
            kept = Kept(tensor)
            cell.holder = weakref.ref(kept)
            return kept
        if tensor.device.type != "cpu":
            msg = "swapping is not built for this device yet: it works on the CPU only; leave swap out of the plan"
            raise NotImplementedError(msg)
        self._busy = True
        try:
            if self.swapper is None:
                self.swapper = Swapper(settings, settings.limit or self._limit or _memory(), self._live)
            slot = cell.holder()
            if not isinstance(slot, Slot) or (slot.source is not None and slot.source._version != slot.version):
                slot = self.swapper.add(tensor, now=now)
                cell.holder = weakref.ref(slot)
            self.swapper.relieve()
            return Swapped(slot, View.of(tensor, cell))
        finally:
            self._busy = False


def _trains(traits: compat.Traits, args: Any) -> bool:
    flag = compat.BATCH_NORMS[traits.name]
    return flag is None or bool(args[flag])


def _generator(kwargs: dict[str, Any], device: torch.device) -> torch.Generator | None:
    given = kwargs.get("generator")
    if given is not None:
        return given
    if device.type == "cpu":
        return torch.default_generator
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else None


def _memory() -> int:
    import os

    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def apply(plan: Plan, model: nn.Module | None = None) -> Engine:
    """Apply a plan to the forward passes inside a ``with`` block; backward may come inside or after it.

    Args:
        plan: What to recompute and swap. Gradients are those of the unplanned step, bit for bit (E5).
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
