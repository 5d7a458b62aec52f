"""Live bytes after each op of a whole step, from the storages that are alive."""

from __future__ import annotations

import time
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from memviz.core.events import Sample, Samples
from memviz.core.failure import Cancelled, OutOfMemoryError, out_of_memory
from memviz.core.timeline import Timeline
from memviz.core.trace import Category, Phase
from memviz.pytorch import compat
from memviz.pytorch.held import Held, Origin, summed
from memviz.pytorch.recipes import tensors_in
from memviz.pytorch.scope import Scope, user_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memviz.core.events import Event
    from memviz.core.timeline import Transfer
    from memviz.pytorch.recipes import Tally
    from memviz.pytorch.step import TrainStep


_OpOverload, _strided = torch._ops.OpOverload, torch.strided


def has_bytes(tensor: torch.Tensor) -> bool:
    """Whether the tensor shows one storage that takes up memory."""
    return tensor.layout is _strided and not tensor.is_meta


def ignore(_event: Event) -> None:
    """Nobody wants to know."""


class Ran(NamedTuple):
    """What came of one op: its result, and each of that's tensors with its position and its storage."""

    result: Any
    seconds: float
    nth: int
    made: list[tuple[int, torch.Tensor, Held]]


class Meter(TorchDispatchMode):
    """Follows every storage that is alive during one step. Times include the metering; plain steps give the real ones."""

    def __init__(
        self,
        step: TrainStep,
        *,
        limit: int | None = None,
        on_event: Callable[[Event], None] = ignore,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self.scope = Scope(step.modules)
        self.live = 0
        self.phases: list[Phase] = []
        self.modules: list[str] = []
        self.seconds: list[float] = []
        self._step = step
        self._limit = limit
        self._on_event, self._cancelled, self._watched = on_event, cancelled, on_event is not ignore
        self.tally: Tally | None = None
        self.recomputed: list[int] = []
        self.places: set[tuple[str, str]] = set()
        """Module and op of everything that ran."""
        self.reserved: list[int] = []
        self._cuda = step.device if step.device.type == "cuda" else None
        self._nbytes = dict.fromkeys(Category, 0)
        self._held: dict[int, Held] = {}
        self._all: list[Held] = []
        self._optimizing = False
        self._levels: list[tuple[int, ...]] = []
        self._sampled = 0
        self._sent = self._start = time.perf_counter()
        self._hooks: list[Any] = []

    def __enter__(self) -> Self:
        self._start = time.perf_counter()
        self._register()
        self.scope.__enter__()
        self._hooks = [
            register_optimizer_step_pre_hook(lambda *_: self._set_optimizing(on=True)),
            register_optimizer_step_post_hook(lambda *_: self._set_optimizing(on=False)),
            *[p.register_post_accumulate_grad_hook(self._gradient) for p in self._step.parameters().values() if p.requires_grad],
        ]
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()
        self.scope.__exit__(*error)
        self._register()
        self._flush()

    def _set_optimizing(self, *, on: bool) -> None:
        self._optimizing = on

    def _register(self) -> None:
        """Give what outlives the step its category: before the step, and for what the step made, after it."""
        named = [(Category.PARAMETER, self._step.parameters()), (Category.BUFFER, self._step.buffers())]
        gradients = {name: p.grad for name, p in self._step.parameters().items() if p.grad is not None}
        states = {f"{i}": tensor for i, tensor in enumerate(tensors_in([dict(o.state) for o in self._step.optimizers]))}
        inputs = {f"inputs.{i}": tensor for i, tensor in enumerate(tensors_in(self._step.inputs))}
        named += [(Category.GRADIENT, gradients), (Category.OPTIMIZER_STATE, states), (Category.INPUT, inputs)]
        for category, tensors in named:
            for name, tensor in tensors.items():
                self._categorise(self._see(tensor, category, name, "", category.value, born=-1), category)

    def _gradient(self, parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            held = self._see(parameter.grad, Category.GRADIENT, "", "", "gradient", born=len(self.seconds))
            self._categorise(held, Category.GRADIENT)

    def _categorise(self, held: Held, category: Category) -> None:
        if held.gone is None:
            self._nbytes[held.category] -= held.nbytes
            self._nbytes[category] += held.nbytes
        held.category = category

    def saved(self, tensor: torch.Tensor) -> object:
        """Autograd saved this tensor: what was a temporary is an activation. What its text is its key."""
        held = self._held.get(tensor.untyped_storage()._cdata)
        if held is None:
            return None
        self._activation(held)
        return held.origin

    def _activation(self, held: Held) -> None:
        if held.category is Category.TEMPORARY:
            self._categorise(held, Category.ACTIVATION)

    def _see(self, tensor: torch.Tensor, category: Category, origin: Origin | str, module: str, op: str, *, born: int) -> Held:
        """The tensor's storage; what is given besides is for one that has not been seen."""
        storage = tensor.untyped_storage()
        address, nbytes = storage._cdata, storage.nbytes()
        held = self._held.get(address)
        if held is not None:
            if held.nbytes == nbytes:
                return held
            self._end(held)  # It has been resized.
        held = Held(address, nbytes, category, origin, module, op, born, source=self._source() if born >= 0 else None)
        held.reference = weakref.ref(storage, lambda _reference, held=held: self._end(held))
        self._held[address] = held
        self._all.append(held)
        self.live += nbytes
        self._nbytes[category] += nbytes
        return held

    def _source(self) -> str | None:
        return user_line()

    def _end(self, held: Held) -> None:
        if held.gone is None:
            held.gone = len(self.seconds)
            self.live -= held.nbytes
            self._nbytes[held.category] -= held.nbytes
            if self._held.get(held.address) is held:
                del self._held[held.address]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._dispatch(func, args, kwargs or {}) if isinstance(func, _OpOverload) else func(*args, **(kwargs or {}))

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        # For subclasses to override: torch wraps each class's own __torch_dispatch__, which costs more than all that is done here.
        return self._run(func, compat.traits(func).name, args, kwargs).result

    def _run(self, func: Any, name: str, args: Any, kwargs: Any) -> Ran:
        """Run the op, and see what it makes."""
        if self._cancelled():
            raise Cancelled
        start = time.perf_counter()
        try:
            result = func(*args, **kwargs)
        except torch.OutOfMemoryError as error:
            raise self.out_of_memory(name, compat.requested_bytes(error), self._limit or compat.device_memory(self._cuda)) from error
        seconds = time.perf_counter() - start
        frame, before, index = self.scope.frame, self.live, len(self.seconds)
        nth = frame.count(name)
        self.places.add((frame.path, name))
        made = [
            (position, tensor, self._see(tensor, Category.TEMPORARY, Origin(frame, name, position, nth), frame.path, name, born=index))
            for position, tensor in enumerate(tensors_in(result))
            if has_bytes(tensor)
        ]
        self._mark(name, frame.path, self.live - before)
        return Ran(result, seconds, nth, made)

    def _phase(self) -> Phase:
        if self._optimizing:
            return Phase.OPTIMIZER
        if compat.in_backward():
            return Phase.BACKWARD
        if self.phases and self.phases[-1] is not Phase.FORWARD and not torch.is_grad_enabled():
            return self.phases[-1]
        return Phase.FORWARD

    def _mark(self, name: str, module: str, requested: int) -> None:
        now = time.perf_counter()
        self.phases.append(self._phase())
        self.modules.append(module)
        self.seconds.append(now - self._start)
        if self._limit is not None and self.live > self._limit:
            raise self.out_of_memory(name, requested, self._limit)
        if self._cuda is not None:
            self.reserved.append(torch.cuda.memory_reserved(self._cuda))
        if self.tally is not None and self.tally.running:
            self.recomputed.append(len(self.seconds) - 1)
        if self._watched:
            self._levels.append(tuple(self._nbytes.values()))
            if now - self._sent > 0.1:
                self._flush()

    def out_of_memory(self, op: str, requested: int, limit: int) -> OutOfMemoryError:
        """E9's report for the op that runs now."""
        before = [held for held in self._alive() if held.born < len(self.seconds) - 1]  # What the op itself made is what was asked for.
        holders = summed(before)[:10]
        live = self.live - requested if self.live > limit else self.live
        failure = out_of_memory(module=self.scope.frame.path, op=op, requested=requested, live=live, limit=limit, holders=holders)
        return OutOfMemoryError(failure)

    def _flush(self) -> None:
        if self._levels:
            samples = tuple(self._sample(op, level) for op, level in enumerate(self._levels, self._sampled))
            self._sampled += len(self._levels)
            self._levels = []
            self._on_event(Samples(samples=samples))
        self._sent = time.perf_counter()

    def _sample(self, op: int, level: tuple[int, ...]) -> Sample:
        nbytes = {category: size for category, size in zip(Category, level, strict=True) if size}
        return Sample(op=op, seconds=self.seconds[op], phase=self.phases[op], nbytes=nbytes)

    def _alive(self) -> list[Held]:
        return [held for held in self._all if held.gone is None]

    def timeline(self, device: str, transfers: Sequence[Transfer] = ()) -> Timeline:
        """What was measured. Each storage counts from the op that made it to the op during which it went."""
        count = len(self.seconds)
        changes = {category: np.zeros(count + 1, np.int64) for category in Category}
        for held in self._all:
            changes[held.category][min(max(held.born, 0), count)] += held.nbytes
            changes[held.category][count if held.gone is None else min(held.gone, count)] -= held.nbytes
        columns = {category: change[:count].cumsum() for category, change in changes.items() if change[:count].any()}
        total = np.sum([np.zeros(count, np.int64), *columns.values()], axis=0)
        at = int(total.argmax()) if count else 0
        live = [held for held in self._all if max(held.born, 0) <= at and (held.gone is None or held.gone > at)]
        return Timeline(
            predicted=False,
            device=device,
            seconds=np.array(self.seconds),
            nbytes=columns,
            phases=tuple(self.phases),
            modules=tuple(self.modules),
            holders=summed(live)[:50],
            transfers=tuple(replace(t, start=t.start - self._start, end=t.end - self._start) for t in transfers),
            recomputed=tuple(self.recomputed),
            reserved=np.array(self.reserved, np.int64) if self.reserved else None,
        )
