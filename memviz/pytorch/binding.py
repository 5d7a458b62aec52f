"""What the steps under a plan leave for those that follow: which ops need a recipe, and where swapped bytes wait."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from memviz.pytorch.transport import Transport, transport_for

if TYPE_CHECKING:
    import torch
    from torch import nn

    from memviz.core.plan import Plan
    from memviz.pytorch.recipes import Tally
    from memviz.pytorch.scope import Calls, Frame, Scope, Wanted


class Program:
    """What is known of the forward passes that begin with one module.

    A step is bound to the ops that the steps before it recomputed from. If it saves more or fewer tensors than they did, it is not the
    same program any more: it has kept what it had no recipe for (E5), and the next step follows every op again and adds to what is known.
    """

    def __init__(self) -> None:
        self._needed: dict[tuple[str, int], frozenset[tuple[str, int]]] = {}
        self._known: Wanted = {}
        self._num_saves: int | None = None
        self._last: tuple[list[Frame], Tally, int] | None = None

    def wanted(self) -> Wanted:
        """By module call, the ops that need a recipe; empty where every op may."""
        if self._last is not None:
            frames, tally, num_saves = self._last
            if tally.dropped != tally.done or not tally.ops:
                return {}  # Its backward has not run, or not to the end.
            self._last = None
            self._add(frames)
            self._num_saves = num_saves
        return {} if self._num_saves is None else self._known

    def _add(self, frames: list[Frame]) -> None:
        for frame in frames:
            place = frame.path, frame.call
            self._needed[place] = self._needed.get(place, frozenset()) | frame.needed
        same = {needed: _by_op(needed) for needed in set(self._needed.values())}  # The turns of a loop share one.
        self._known = {place: same[needed] for place, needed in self._needed.items()}

    def learn(self, scope: Scope, tally: Tally, num_saves: int) -> None:
        """A forward pass is over; what its backward recomputes becomes known in the frames."""
        if not scope.wanted:
            self._last = scope.frames, tally, num_saves
        elif num_saves != self._num_saves:
            self._num_saves = None


def _by_op(needed: frozenset[tuple[str, int]]) -> Calls:
    return {op: frozenset(nth for name, nth in needed if name == op) for op, _ in needed}


class Binding:
    """What is known of the steps under one plan."""

    def __init__(self) -> None:
        self._programs: weakref.WeakKeyDictionary[nn.Module, Program] = weakref.WeakKeyDictionary()
        self._transports: dict[tuple[torch.device, str], Transport] = {}

    def wanted(self, first: nn.Module) -> Wanted:
        """The ops that need a recipe in a forward pass that begins with this module."""
        return self._programs.setdefault(first, Program()).wanted()

    def learn(self, scope: Scope, tally: Tally, num_saves: int) -> None:
        """See Program."""
        assert scope.first is not None
        self._programs.setdefault(scope.first, Program()).learn(scope, tally, num_saves)

    def transport(self, device: torch.device, target: str) -> Transport:
        """The place of this plan's swapped values: its file, thread and pinned memory serve every step, and go with the plan."""
        place = device, target
        if place not in self._transports:
            self._transports[place] = transport_for(device, target)
        return self._transports[place]


_bindings: dict[int, Binding] = {}


def binding_of(plan: Plan) -> Binding:
    """The plan's binding, which lives as long as the plan itself."""
    found = _bindings.get(id(plan))
    if found is None:
        found = _bindings[id(plan)] = Binding()
        weakref.finalize(plan, _bindings.pop, id(plan), None).atexit = False
    return found
