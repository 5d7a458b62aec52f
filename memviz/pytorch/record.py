"""One real step, recorded: every op, every version of every storage, every tensor that autograd saves."""

from __future__ import annotations

import gc
import statistics
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from memviz.core.events import Event, Progress
from memviz.core.failure import Cancelled
from memviz.core.trace import Category, Module, Op, Save, Trace, Value
from memviz.pytorch import compat
from memviz.pytorch.held import Held, Origin
from memviz.pytorch.meter import Meter, has_bytes, ignore
from memviz.pytorch.recipes import tensors_in
from memviz.pytorch.reversible import ReversibleBlock
from memviz.pytorch.run import device_name, environment, timed_step
from memviz.pytorch.scope import Frame, user_line
from memviz.pytorch.step import as_step, restored

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True, eq=False)
class Draft:
    """A value while its fate is open."""

    id: int
    held: Held
    origin: Origin | str
    dtype: torch.dtype
    shape: torch.Size
    device: torch.device
    producer: int | None
    born: int
    last_used: int
    replaced: int | None = None
    """The op that overwrote it."""


class _Call(NamedTuple):
    """One op call: the fields of an Op that only the call itself knows. Cheaper to make than an Op, of which there is one once it is over."""

    traits: compat.Traits
    frame: Frame
    nth: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    seconds: float
    forward: int | None
    source: str | None
    mutates: tuple[int, ...]
    replayable: bool


@dataclass(slots=True, eq=False)
class _Saved:
    draft: Draft | None
    alias: torch.Tensor | None
    packed: int
    unpacked: list[int] = field(default_factory=list)


OBJECTS_OF_AN_OP = 15
"""How many objects that the garbage collector follows are kept for an op, about."""


class _User(weakref.ref):
    """A tensor on a storage, as long as the user's code can reach it."""

    __slots__ = ("held",)
    held: Held


class Recorder(Meter):
    """A meter that also writes down ops, versions and saves."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.drafts: list[Draft] = []
        self._calls: list[_Call] = []
        self._line: str | None = None
        self._current: dict[Held, Draft] = {}
        self._users: dict[Held, int] = {}
        self._released: dict[Held, int] = {}
        self._references: list[_User] = []
        self._saves: list[_Saved] = []
        self._nodes: dict[int, int] = {}
        self._quiet = False
        self._hooks_saved = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def __enter__(self) -> Self:
        super().__enter__()
        self._hooks_saved.__enter__()
        # Collections are due by the number of new objects. What is written down of an op would make them come as much more often
        # than in a plain step, each of them going through all that was written down before.
        self._collected_at = gc.get_threshold()
        gc.set_threshold(self._collected_at[0] * OBJECTS_OF_AN_OP, *self._collected_at[1:])
        return self

    def __exit__(self, *error: object) -> None:
        gc.set_threshold(*self._collected_at)
        self._hooks_saved.__exit__(*error)
        super().__exit__(*error)

    def _draft(self, tensor: torch.Tensor, *, born: int) -> Draft:
        """The version that the tensor's storage is at."""
        storage = tensor.untyped_storage()
        held = self._held.get(storage._cdata)
        if held is None or held.nbytes != storage.nbytes():
            held = self._see(tensor, Category.TEMPORARY, "", self.scope.frame.path, "", born=born)
        return self._current.get(held) or self._new(held, tensor, held.origin, born=held.born, last_used=born)

    def _made(self, held: Held, tensor: torch.Tensor, origin: Origin, *, producer: int) -> Draft:
        """The version that an op has made of a storage: there may be an earlier one."""
        found = self._current.get(held)
        if found is not None:
            if found.producer == producer:
                return found
            found.replaced = producer
        return self._new(held, tensor, origin, born=producer, last_used=producer, producer=producer)

    def _new(
        self, held: Held, tensor: torch.Tensor, origin: Origin | str, *, born: int, last_used: int, producer: int | None = None
    ) -> Draft:
        draft = Draft(len(self.drafts), held, origin, tensor.dtype, tensor.shape, tensor.device, producer, born, last_used)
        self.drafts.append(draft)
        self._current[held] = draft
        return draft

    def _watch(self, tensor: torch.Tensor, held: Held) -> None:
        """Count the tensors on a storage that the user's code can reach; autograd's saves are not among them."""
        self._users[held] = self._users.get(held, 0) + 1
        user = _User(tensor, self._dropped)
        user.held = held
        self._references.append(user)

    def _dropped(self, user: _User) -> None:
        held = user.held
        self._users[held] -= 1
        if not self._users[held]:
            self._released.setdefault(held, len(self.seconds))

    def _source(self) -> str | None:
        return self._line or user_line()

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        if self._quiet:
            return func(*args, **kwargs)
        self._line = user_line()
        try:
            return self._record(func, compat.traits(func), args, kwargs)
        finally:
            self._line = None

    def _record(self, func: Any, traits: compat.Traits, args: Any, kwargs: Any) -> Any:
        index, frame = len(self.seconds), self.scope.frame
        arguments = [tensor for tensor in tensors_in((*args, kwargs) if kwargs else args) if has_bytes(tensor)]
        drafts = [self._draft(tensor, born=index) for tensor in arguments]
        for draft in drafts:
            draft.last_used = index
        written = _written(traits, args, kwargs) if traits.writes else []
        mutates = [self._draft(tensor, born=index).id for tensor in written]
        result, seconds, nth, made = self._run(func, traits.name, args, kwargs)
        outputs = [
            self._made(
                self._see(tensor, Category.TEMPORARY, "", frame.path, "", born=index),
                tensor,
                Origin(frame, traits.name, 0, nth),
                producer=index,
            ).id
            for tensor in written
        ]
        known = {draft.held.address for draft in drafts}
        for position, tensor, held in made:
            if held.address not in known:
                outputs.append(self._made(held, tensor, Origin(frame, traits.name, position, nth), producer=index).id)
            self._watch(tensor, held)
        self._calls.append(
            _Call(
                traits,
                frame,
                nth,
                _unique([draft.id for draft in drafts]),
                _unique(outputs),
                seconds,
                self._forward(index),
                self._line,
                _unique(mutates),
                traits.replayable and bool(arguments) and all(map(compat.plain, arguments)),
            )
        )
        return result

    def _forward(self, index: int) -> int | None:
        """For an op of backward, the forward op whose autograd node is running; one of forward is noted as its node's."""
        if compat.in_backward():
            return self._nodes.get(compat.backward_sequence_number() or 0)
        self._nodes.setdefault(compat.sequence_number() - 1, index)
        return None

    def _pack(self, tensor: torch.Tensor) -> _Saved:
        index = len(self.seconds)
        draft = self._draft(tensor, born=index) if tensor.layout is torch.strided else None
        made_now = draft is not None and draft.producer == index - 1
        saved = _Saved(draft, self._alias(tensor), index - 1 if made_now else index)
        if draft is not None:
            self._activation(draft.held)
            self._saves.append(_Saved(draft, None, saved.packed, saved.unpacked))
        return saved

    def _alias(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor's data as another tensor: the one that was saved would be taken for the user's."""
        if compat.plain(tensor):
            return compat.alias(tensor)
        self._quiet = True
        try:
            return tensor.data
        finally:
            self._quiet = False

    def _unpack(self, saved: _Saved) -> torch.Tensor | None:
        saved.unpacked.append(len(self.seconds))
        return saved.alias

    def trace(self, *, title: str, device: str, seconds: float) -> Trace:
        """Everything as frozen data."""
        count = len(self._calls)
        modules = tuple(
            Module(path=path, kind=type(module).__name__, reversible=isinstance(module, ReversibleBlock))
            for path, module in self.scope.kinds.items()
        )
        return Trace(
            title=title,
            device=device,
            ops=tuple(self._op(index, call) for index, call in enumerate(self._calls)),
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

    def _op(self, index: int, call: _Call) -> Op:
        return Op(
            index=index,
            name=call.traits.name,
            phase=self.phases[index],
            module=call.frame.path,
            call=call.frame.call,
            nth=call.nth,
            inputs=call.inputs,
            outputs=call.outputs,
            seconds=call.seconds,
            forward=call.forward,
            source=call.source,
            random=call.traits.random,
            mutates=call.mutates,
            replayable=call.replayable,
        )

    def _value(self, draft: Draft, count: int) -> Value:
        held = draft.held
        gone = count if held.gone is None else min(held.gone, count)
        freed = max(draft.born, gone if draft.replaced is None else min(draft.replaced, gone))
        released = self._released.get(held, count if self._users.get(held) or draft.born < 0 else draft.born)
        return Value(
            id=draft.id,
            storage=id(held),
            key=str(draft.origin or held.origin),
            nbytes=held.nbytes,
            dtype=str(draft.dtype).removeprefix("torch."),
            shape=tuple(draft.shape),
            device=str(draft.device),
            category=held.category,
            producer=draft.producer,
            born=draft.born,
            last_used=draft.last_used,
            released=max(draft.born, min(released, freed)),
            freed=freed,
        )


def _written(traits: compat.Traits, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors that the op's schema says it writes."""
    found = [kwargs.get(where) if isinstance(where, str) else (args[where] if where < len(args) else None) for where in traits.writes]
    return [tensor for tensor in tensors_in(found) if has_bytes(tensor)]


def _unique(ids: list[int]) -> tuple[int, ...]:
    return tuple(ids) if len(ids) < 2 else tuple(dict.fromkeys(ids))


def record(
    step: Any,
    *,
    on_event: Callable[[Event], None] = ignore,
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
