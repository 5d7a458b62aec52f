"""Live bytes after each op of a whole step, from the storages that are alive."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from memviz.core.events import Sample, Samples
from memviz.core.failure import Cancelled, OutOfMemoryError, out_of_memory
from memviz.core.timeline import Holder, Timeline
from memviz.core.trace import Category, Phase
from memviz.pytorch import compat
from memviz.pytorch.recipes import tensors_in
from memviz.pytorch.scope import Scope, user_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memviz.core.events import Event
    from memviz.core.timeline import Transfer
    from memviz.pytorch.recipes import Tally
    from memviz.pytorch.step import TrainStep


@dataclass(slots=True, eq=False)
class Held:
    """One storage: how large it is, what it is for, who made it, and over which ops it lived."""

    nbytes: int
    category: Category
    key: str
    module: str
    op: str
    born: int
    source: str | None = None
    gone: int | None = None
    reference: weakref.ref[torch.UntypedStorage] | None = None

    def holder(self) -> Holder:
        """As a line of who holds the peak."""
        return Holder(key=self.key, module=self.module, op=self.op, source=self.source, nbytes=self.nbytes, category=self.category)


class Meter(TorchDispatchMode):
    """Follows every storage that is alive during one step. Times include the metering; plain steps give the real ones."""

    def __init__(
        self,
        step: TrainStep,
        *,
        limit: int | None = None,
        on_event: Callable[[Event], None] = lambda _event: None,
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
        self._on_event, self._cancelled = on_event, cancelled
        self.tally: Tally | None = None
        self.recomputed: list[int] = []
        self.reserved: list[int] = []
        self._cuda = step.device if step.device.type == "cuda" else None
        self._nbytes = dict.fromkeys(Category, 0)
        self._held: dict[int, Held] = {}
        self._all: list[Held] = []
        self._optimizing = False
        self._samples: list[Sample] = []
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

    def saved(self, tensor: torch.Tensor) -> None:
        """Autograd saved this tensor: what was a temporary is an activation."""
        held = self._held.get(tensor.untyped_storage()._cdata)
        if held is not None and held.category is Category.TEMPORARY:
            self._categorise(held, Category.ACTIVATION)

    def _see(self, tensor: torch.Tensor, category: Category, key: str, module: str, op: str, *, born: int) -> Held:
        storage = tensor.untyped_storage()
        name, nbytes = storage._cdata, storage.nbytes()
        held = self._held.get(name)
        if held is not None and held.reference is not None and held.reference() is storage:
            if held.nbytes != nbytes:
                self._end(held)
                held = None
            else:
                return held
        held = Held(nbytes, category, key, module, op, born, source=user_line() if born >= 0 else None)
        held.reference = weakref.ref(storage, lambda _reference, held=held: self._end(held))
        self._held[name] = held
        self._all.append(held)
        self.live += nbytes
        self._nbytes[category] += nbytes
        return held

    def _end(self, held: Held) -> None:
        if held.gone is None:
            held.gone = len(self.seconds)
            self.live -= held.nbytes
            self._nbytes[held.category] -= held.nbytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **(kwargs or {}))
        if self._cancelled():
            raise Cancelled
        name = compat.traits(func).name
        try:
            result = func(*args, **(kwargs or {}))
        except torch.OutOfMemoryError as error:
            raise self.out_of_memory(name, compat.requested_bytes(error), self._limit or compat.device_memory(self._cuda)) from error
        nth = self.scope.frame.count(name)
        before = self.live
        for position, tensor in enumerate(tensors_in(result)):
            if tensor.layout is torch.strided and tensor.device.type != "meta":
                key = self.scope.key(name, position, nth)
                self._see(tensor, Category.TEMPORARY, str(key), key.module, name, born=len(self.seconds))
        self._mark(name, self.live - before)
        return result

    def _mark(self, name: str, requested: int) -> None:
        phase = Phase.OPTIMIZER if self._optimizing else Phase.BACKWARD if compat.in_backward() else Phase.FORWARD
        if self.phases and phase is Phase.FORWARD and self.phases[-1] is not Phase.FORWARD and not torch.is_grad_enabled():
            phase = self.phases[-1]
        self.phases.append(phase)
        self.modules.append(self.scope.frame.path)
        self.seconds.append(time.perf_counter() - self._start)
        if self._limit is not None and self.live > self._limit:
            raise self.out_of_memory(name, requested, self._limit)
        if self._cuda is not None:
            self.reserved.append(torch.cuda.memory_reserved(self._cuda))
        if self.tally is not None and self.tally.running:
            self.recomputed.append(len(self.seconds) - 1)
        nbytes = {category: size for category, size in self._nbytes.items() if size}
        self._samples.append(Sample(op=len(self.seconds) - 1, seconds=self.seconds[-1], phase=phase, nbytes=nbytes))
        if time.perf_counter() - self._sent > 0.1:
            self._flush()

    def out_of_memory(self, op: str, requested: int, limit: int) -> OutOfMemoryError:
        """E9's report for the op that runs now."""
        holders = tuple(held.holder() for held in sorted(self._alive(), key=lambda held: -held.nbytes)[:10])
        live = self.live - requested if self.live > limit else self.live
        failure = out_of_memory(module=self.scope.frame.path, op=op, requested=requested, live=live, limit=limit, holders=holders)
        return OutOfMemoryError(failure)

    def _flush(self) -> None:
        if self._samples:
            self._on_event(Samples(samples=tuple(self._samples)))
            self._samples = []
        self._sent = time.perf_counter()

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
            holders=tuple(held.holder() for held in sorted(live, key=lambda held: -held.nbytes)[:50]),
            transfers=tuple(replace(t, start=t.start - self._start, end=t.end - self._start) for t in transfers),
            recomputed=tuple(self.recomputed),
            reserved=np.array(self.reserved, np.int64) if self.reserved else None,
        )
