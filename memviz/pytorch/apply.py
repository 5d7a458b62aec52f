"""A plan, applied to whatever runs inside a ``with`` block: the engine (E1, E2, E5, E6)."""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from operator import methodcaller
from typing import TYPE_CHECKING, Self

import torch

from memviz.core.keys import Key
from memviz.core.plan import Action, Plan, Swap
from memviz.pytorch import compat
from memviz.pytorch.binding import binding_of
from memviz.pytorch.collecting import fewer_collections
from memviz.pytorch.held import Origin
from memviz.pytorch.recipes import Tally
from memviz.pytorch.reversible import ReversibleSequence, reversing
from memviz.pytorch.saved import Dropped, Kept
from memviz.pytorch.scope import Scope
from memviz.pytorch.swapping import Swapper
from memviz.pytorch.tracing import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from memviz.pytorch.recipes import Cell
    from memviz.pytorch.slots import Swapped


OBJECTS_OF_AN_OP = 15
"""How many objects that the garbage collector follows are kept for an op, at most."""


def reversal_key(path: str) -> Key:
    """The key by which a plan's rules say whether the reversible sequence at this path is reversed."""
    return Key(module=path, op="reverse", output=0, call=0, nth=0)


class Engine:
    """Does with each tensor that autograd saves what the plan says.

    A plan that only swaps what is kept needs no more than the saves. One whose rules name ops follows every op of the forward pass,
    which costs time for each: in the first step for all of them, and from then on for those that something is recomputed from.

    Args:
        plan: What to do.
        modules: Names of the outermost modules.
        limit: Bytes that count as full where the plan's swap gives none.
        live: Bytes on the device now; see Swapper for what is taken where it is left out.
        resident: Bytes that the engine does not see, such as optimizer state.
        on_save: Told of each tensor that autograd saves; gives it a name, which transfers then go by.
            Without it, a plan that keeps everything costs nothing.
    """

    def __init__(
        self,
        plan: Plan,
        modules: dict[str, nn.Module] | None = None,
        *,
        limit: int | None = None,
        live: Callable[[], int] | None = None,
        resident: int = 0,
        on_save: Callable[[torch.Tensor], object] | None = None,
    ) -> None:
        self.plan, self.tally, self.on_save = plan, Tally(), on_save
        self.swapper: Swapper | None = None
        self._limit, self._live, self._resident = limit, live, resident
        actions = {rule.action for rule in plan.rules}
        self._idle = plan.keeps_everything and on_save is None
        self._reversing, self._swaps = Action.REVERSE in actions, plan.swap is not None or Action.SWAP in actions
        self._binding = binding_of(plan)
        traces = bool(actions & {Action.RECOMPUTE, Action.SWAP})
        self._binds = traces and not self._swaps  # What a recipe held could not be swapped.
        self.scope = Scope(modules, self._binding.wanted) if self._binds else Scope(modules)
        self._tracer = Tracer(self.scope, self.tally) if traces else None
        self._num_saves = 0
        self._entered: ExitStack | None = None

    def __enter__(self) -> Self:
        if self._idle:
            return self
        with ExitStack() as stack:
            stack.enter_context(fewer_collections(OBJECTS_OF_AN_OP))
            if self._reversing or self._tracer is not None:
                stack.enter_context(self.scope)
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self._hook(), _UNPACK))
            if self._reversing:
                stack.enter_context(reversing(self._reverses))
            if self._tracer is not None:
                stack.enter_context(self._tracer)
            self._entered = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        if self._idle:
            return
        assert self._entered is not None
        if self.swapper is not None:
            self.swapper.finish()
        self._entered.__exit__(*error)
        self._entered = None  # It holds bound methods: a cycle that would keep the swapper's file until the next collection.
        if self._tracer is not None:
            self._tracer.finish()
        if self._binds and self.scope.first is not None:
            self._binding.learn(self.scope, self.tally, self._num_saves)

    def _hook(self) -> Callable[[torch.Tensor], Kept | Dropped | Swapped]:
        return self._pack if self._tracer is not None or self.plan.swap is None else self._pack_by_size

    def _reverses(self, sequence: ReversibleSequence) -> bool:
        return self.plan.action(reversal_key(self.scope.paths.get(id(sequence), ""))) is Action.REVERSE

    def _pack(self, tensor: torch.Tensor) -> Kept | Dropped | Swapped:
        if not compat.plain(tensor):
            return Kept(tensor, plain=False)
        if self.on_save is not None:
            self.on_save(tensor)
        if self._tracer is None:
            return Kept(tensor, plain=True)
        self._num_saves += 1
        saved = self._planned(tensor, self._tracer)
        if self.swapper is not None:
            self.swapper.relieve()
        return saved

    def _pack_by_size(self, tensor: torch.Tensor) -> Kept | Swapped:
        """Of a plan that only swaps what is kept."""
        swapper = self.swapper or self._swapper(tensor)
        if self.on_save is None or not compat.plain(tensor):
            return swapper.pack(tensor)
        saved = swapper.offer(tensor, self.on_save(tensor))
        swapper.relieve()
        return saved

    def _planned(self, tensor: torch.Tensor, tracer: Tracer) -> Kept | Dropped | Swapped:
        """The tensor by the action of what it shows."""
        cell = tracer.cell(tensor)
        if cell is None:
            return Kept(tensor, plain=True) if self.plan.swap is None else self._swapper(tensor).offer(tensor)
        action = self._action(cell)
        if action is Action.RECOMPUTE and cell.node is not None and not cell.uninitialised:
            return tracer.drop(tensor, cell)
        if action is Action.SWAP or (action is Action.KEEP and self.plan.swap is not None):
            saved = self._swapper(tensor).offer(tensor, _origin(cell), now=action is Action.SWAP)
        else:
            saved = Kept(tensor, plain=True)
        cell.holder = weakref.ref(saved if isinstance(saved, Kept) else saved.slot)
        return saved

    def _action(self, cell: Cell) -> Action:
        assert cell.frame is not None
        position = self.plan.matching.at(cell.frame.path, cell.op, cell.output).last(f"{cell.frame.call}.{cell.nth}")
        return Action.KEEP if position is None else self.plan.rules[position].action

    def _swapper(self, tensor: torch.Tensor) -> Swapper:
        if self.swapper is None:
            settings, device = self.plan.swap or Swap(), tensor.device
            limit = int(settings.limit or self._limit or compat.device_memory(device))
            transport = self._binding.transport(device, settings.target)
            self.swapper = Swapper(settings, limit, transport, live=self._live, resident=self._resident)
        return self.swapper


def _origin(cell: Cell) -> Origin:
    assert cell.frame is not None
    return Origin(cell.frame, cell.op, cell.output, cell.nth)


_UNPACK = methodcaller("unpack")


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
