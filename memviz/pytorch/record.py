"""One real step, recorded: every op, every version of every storage, every tensor that autograd saves."""

from __future__ import annotations

import statistics
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import torch

from memviz.core.events import Event, Progress
from memviz.core.failure import Cancelled
from memviz.core.trace import Category, Module, Op, Save, Trace, Value
from memviz.pytorch import compat
from memviz.pytorch.meter import Held, Meter
from memviz.pytorch.recipes import tensors_in
from memviz.pytorch.reversible import ReversibleBlock
from memviz.pytorch.run import device_name, environment, timed_step
from memviz.pytorch.scope import user_line
from memviz.pytorch.step import as_step, restored

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True, eq=False)
class Draft:
    """A value while its fate is open."""

    id: int
    held: Held
    key: str
    dtype: str
    shape: tuple[int, ...]
    device: str
    producer: int | None
    born: int
    last_used: int
    replaced: int | None = None
    """The op that overwrote it."""


@dataclass(slots=True, eq=False)
class _Saved:
    draft: Draft | None
    alias: torch.Tensor | None
    packed: int
    unpacked: list[int] = field(default_factory=list)


class Recorder(Meter):
    """A meter that also writes down ops, versions and saves."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.ops: list[Op] = []
        self.drafts: list[Draft] = []
        self._current: dict[Held, Draft] = {}
        self._users: dict[Held, int] = {}
        self._released: dict[Held, int] = {}
        self._saves: list[_Saved] = []
        self._nodes: dict[int, int] = {}
        self._quiet = False
        self._hooks_saved = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def __enter__(self) -> Self:
        super().__enter__()
        self._hooks_saved.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks_saved.__exit__(*error)
        super().__exit__(*error)

    def _draft(self, tensor: torch.Tensor, *, born: int, producer: int | None = None, key: str = "") -> Draft:
        held = self._see(tensor, Category.TEMPORARY, key, self.scope.frame.path, "", born=born)
        found = self._current.get(held)
        if found is None or (producer is not None and found.producer != producer):
            if found is not None:
                found.replaced = born
            found = Draft(
                id=len(self.drafts),
                held=held,
                key=key or held.key,
                dtype=str(tensor.dtype).removeprefix("torch."),
                shape=tuple(tensor.shape),
                device=str(tensor.device),
                producer=producer,
                born=born if found is not None or producer is not None else held.born,
                last_used=born,
            )
            self.drafts.append(found)
            self._current[held] = found
        return found

    def _watch(self, tensor: torch.Tensor, held: Held) -> None:
        """Count the tensors on a storage that the user's code can reach; autograd's saves are not among them."""
        self._users[held] = self._users.get(held, 0) + 1

        def dropped(_reference: object, references: list[object] = self._references) -> None:
            self._users[held] -= 1
            if not self._users[held]:
                self._released.setdefault(held, len(self.seconds))

        self._references.append(weakref.ref(tensor, dropped))

    @property
    def _references(self) -> list[object]:
        return self.__dict__.setdefault("_kept_references", [])

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._quiet or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        index, traits, frame = len(self.seconds), compat.traits(func), self.scope.frame
        arguments = [tensor for tensor in tensors_in(args) + tensors_in(kwargs) if tensor.layout is torch.strided]
        inputs = tuple(dict.fromkeys(self._draft(tensor, born=index).id for tensor in arguments))
        for number in inputs:
            self.drafts[number].last_used = index
        written = [
            tensor
            for where in traits.writes
            for tensor in tensors_in(kwargs.get(where) if isinstance(where, str) else (args[where] if where < len(args) else None))
        ]
        mutated = tuple(dict.fromkeys(self._draft(tensor, born=index).id for tensor in written))
        start = time.perf_counter()
        result = super().__torch_dispatch__(func, types, args, kwargs)
        seconds = time.perf_counter() - start
        nth = frame.counts[traits.name] - 1
        known = {tensor.untyped_storage()._cdata for tensor in arguments}
        outputs = [self._draft(tensor, born=index, producer=index, key=str(self.scope.key(traits.name, 0, nth))).id for tensor in written]
        for position, tensor in enumerate(tensors_in(result)):
            if tensor.layout is not torch.strided:
                continue
            if tensor.untyped_storage()._cdata not in known:
                draft = self._draft(tensor, born=index, producer=index, key=str(self.scope.key(traits.name, position, nth)))
                outputs.append(draft.id)
            self._watch(tensor, self._see(tensor, Category.TEMPORARY, "", "", "", born=index))
        forward = None
        if compat.in_backward():
            forward = self._nodes.get(compat.backward_sequence_number() or 0)
        else:
            self._nodes.setdefault(compat.sequence_number() - 1, index)
        self.ops.append(
            Op(
                index=index,
                name=traits.name,
                phase=self.phases[index],
                module=frame.path,
                call=frame.call,
                nth=nth,
                inputs=inputs,
                outputs=tuple(dict.fromkeys(outputs)),
                seconds=seconds,
                forward=forward,
                source=user_line(),
                random=traits.random,
                mutates=mutated,
                replayable=traits.replayable and bool(arguments) and all(map(compat.plain, arguments)),
            )
        )
        return result

    def _pack(self, tensor: torch.Tensor) -> _Saved:
        index = len(self.seconds)
        draft = self._draft(tensor, born=index) if tensor.layout is torch.strided else None
        self.saved(tensor)
        made_now = draft is not None and draft.producer == index - 1
        self._quiet = True
        try:
            alias = tensor.data
        finally:
            self._quiet = False
        saved = _Saved(draft, alias, index - 1 if made_now else index)
        if draft is not None:
            self._saves.append(_Saved(draft, None, saved.packed, saved.unpacked))
        return saved

    def _unpack(self, saved: _Saved) -> torch.Tensor | None:
        saved.unpacked.append(len(self.seconds))
        return saved.alias

    def trace(self, *, title: str, device: str, seconds: float) -> Trace:
        """Everything as frozen data."""
        count = len(self.ops)
        modules = tuple(
            Module(path=path, kind=type(module).__name__, reversible=isinstance(module, ReversibleBlock))
            for path, module in self.scope.kinds.items()
        )
        return Trace(
            title=title,
            device=device,
            ops=tuple(self.ops),
            values=tuple(self._value(draft, count) for draft in self.drafts),
            saves=tuple(
                Save(value=s.draft.id, packed=min(s.packed, count - 1), unpacked=tuple(min(i, count - 1) for i in s.unpacked))
                for s in self._saves
                if s.draft is not None
            ),
            modules=modules,
            seconds=seconds,
            environment=environment(),
        )

    def _value(self, draft: Draft, count: int) -> Value:
        held = draft.held
        gone = count if held.gone is None else min(held.gone, count)
        freed = max(draft.born, gone if draft.replaced is None else min(draft.replaced, gone))
        released = self._released.get(held, count if self._users.get(held) or draft.born < 0 else draft.born)
        return Value(
            id=draft.id,
            storage=id(held),
            key=draft.key,
            nbytes=held.nbytes,
            dtype=draft.dtype,
            shape=draft.shape,
            device=draft.device,
            category=held.category,
            producer=draft.producer,
            born=draft.born,
            last_used=draft.last_used,
            released=max(draft.born, min(released, freed)),
            freed=freed,
        )


def record(
    step: Any,
    *,
    on_event: Callable[[Event], None] = lambda _event: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Trace:
    """Record one real training step, and give everything back as it was (E10).

    Args:
        step: A TrainStep, a callable that does one whole step, or a workload.
        on_event: Told of progress, and of memory while the step runs.
        cancelled: Asked between ops.

    Returns:
        The trace; its ``seconds`` is the median of three plain steps after one that warms up.
    """
    step = as_step(step)
    seconds = []
    for number in range(4):
        if cancelled():
            raise Cancelled
        on_event(Progress(stage=f"plain step {number} of 3" if number else "warm-up step", fraction=number / 5))
        seconds.append(timed_step(step))
    on_event(Progress(stage="recorded step", fraction=0.8))
    with restored(step):
        recorder = Recorder(step, on_event=on_event, cancelled=cancelled)
        with recorder:
            loss = step()
        del loss
    return recorder.trace(title=step.title, device=device_name(step.device), seconds=statistics.median(seconds[1:]))
