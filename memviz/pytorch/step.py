"""A real training step as one callable, and the state that exploring it must give back (E10)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from torch.optim import Optimizer


class TrainStep:
    """One whole training step: clear gradients, forward, loss, backward, optimizer.

    Args:
        model: A module; or a callable that does one whole step itself, in which case ``modules`` and ``optimizers``
            say what it changes (found in its closure where left out).
        inputs: A tensor, a tuple (positional) or a dict (keyword arguments of the model).
        loss_fn: From the model's output to the scalar to differentiate; the output itself where left out.
        optimizer: May be left out.
        title: For people.

    Raises:
        ValueError: If there is nothing to step or to differentiate.

    >>> step = TrainStep(nn.Linear(4, 1), torch.ones(2, 4), lambda output: output.sum())
    >>> step().shape
    torch.Size([])
    """

    def __init__(
        self,
        model: nn.Module | Callable[[], Any],
        inputs: Any = None,
        loss_fn: Callable[[Any], torch.Tensor] | None = None,
        optimizer: Optimizer | None = None,
        *,
        title: str = "",
        modules: Mapping[str, nn.Module] | None = None,
        optimizers: tuple[Optimizer, ...] = (),
    ) -> None:
        if not callable(model):
            msg = f"TrainStep takes a model or a callable that does one whole step, not {model!r}"
            raise ValueError(msg)
        if loss_fn is not None and not callable(loss_fn):
            msg = f"loss_fn is a callable from the model's output to the scalar to differentiate, not {loss_fn!r}"
            raise ValueError(msg)
        if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
            msg = f"optimizer is one that was made for the model, such as torch.optim.SGD(model.parameters(), lr=0.1), not {optimizer!r}"
            raise ValueError(msg)
        if isinstance(model, nn.Module):
            self.modules: dict[str, nn.Module] = {"": model}
            self.optimizers = [optimizer] if optimizer is not None else []
            if inputs is None:
                msg = "TrainStep needs the model's inputs: a tensor, a tuple of positional or a dict of keyword arguments"
                raise ValueError(msg)
        else:
            found = list(_reachable(model))
            self.modules = dict(modules or _named([part for part in found if isinstance(part, nn.Module)]))
            self.optimizers = list(optimizers) or [part for part in found if isinstance(part, torch.optim.Optimizer)]
        self.model, self.inputs, self.loss_fn = model, inputs, loss_fn
        self.title = title or getattr(model, "__name__", type(model).__name__)

    def __repr__(self) -> str:
        return f"TrainStep({self.title!r} on {self.device})"

    @property
    def device(self) -> torch.device:
        """Where its first parameter is; the CPU if it has none."""
        return next((tensor.device for tensor in self.parameters().values()), torch.device("cpu"))

    def parameters(self) -> dict[str, nn.Parameter]:
        """Every parameter, by name."""
        return {f"{root}.{name}".lstrip("."): part for root, module in self.modules.items() for name, part in module.named_parameters()}

    def buffers(self) -> dict[str, torch.Tensor]:
        """Every buffer, by name."""
        return {f"{root}.{name}".lstrip("."): part for root, module in self.modules.items() for name, part in module.named_buffers()}

    def forward(self) -> torch.Tensor:
        """Model and loss, without backward; ValueError where the loss can't be differentiated."""
        inputs = self.inputs
        if isinstance(inputs, Mapping):
            output = self.model(**inputs)
        else:
            output = self.model(*inputs) if isinstance(inputs, tuple) else self.model(inputs)
        loss = output if self.loss_fn is None else self.loss_fn(output)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            shape = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
            msg = f"the loss must be a scalar tensor, but is {shape}; give a loss_fn that returns one, such as lambda output: output.mean()"
            raise ValueError(msg)
        if not loss.requires_grad:
            msg = (
                "the loss does not require grad: no parameter that requires grad leads to it, or it was computed under no_grad or detached"
            )
            raise ValueError(msg)
        return loss

    def __call__(self, engine: AbstractContextManager[object] | None = None) -> torch.Tensor:
        """Run one whole step for real; the loss, detached (NaN if a callable returns none).

        Args:
            engine: Entered around forward only, where forward can be told apart (E1); around the whole step of a callable.
        """
        engine = engine or nullcontext()
        if not isinstance(self.model, nn.Module):
            with engine:
                loss = self.model()
            return loss.detach() if isinstance(loss, torch.Tensor) else torch.tensor(float("nan") if loss is None else float(loss))
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        if not self.optimizers:
            self.model.zero_grad(set_to_none=True)
        with engine:
            loss = self.forward()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.detach()


def as_step(thing: Any) -> TrainStep:
    """A TrainStep from a TrainStep, a callable that does one whole step, or a workload (which is built)."""
    if isinstance(thing, TrainStep):
        return thing
    if hasattr(thing, "build"):
        return thing.build()
    if isinstance(thing, nn.Module):
        msg = "a model alone is no training step; use mv.TrainStep(model, inputs, loss_fn, optimizer)"
        raise ValueError(msg)
    return TrainStep(thing)


def _reachable(function: Callable[[], Any]) -> Iterator[Any]:
    target = inspect.unwrap(getattr(function, "__func__", function))
    seen: list[Any] = [getattr(function, "__self__", None)]
    if inspect.isfunction(target):
        closure = inspect.getclosurevars(target)
        seen += [*closure.nonlocals.values(), *closure.globals.values()]
    for part in seen:
        yield part
        yield from vars(part).values() if hasattr(part, "__dict__") and not isinstance(part, nn.Module) else ()


def _named(modules: list[nn.Module]) -> dict[str, nn.Module]:
    unique = list({id(module): module for module in modules}.values())
    return {"" if number == 0 else f"{type(module).__name__}{number}": module for number, module in enumerate(unique)}


@contextmanager
def restored(step: TrainStep) -> Iterator[None]:
    """Give back parameters, buffers, gradients, optimizer state and random state as they were (E10)."""
    tensors = [*step.parameters().values(), *step.buffers().values()]
    values = [tensor.detach().clone() for tensor in tensors]
    gradients = [(p, p.grad, None if p.grad is None else p.grad.detach().clone()) for p in step.parameters().values()]
    states = [(optimizer, _copy(dict(optimizer.state))) for optimizer in step.optimizers]
    cuda = torch.cuda.get_rng_state_all() if step.device.type == "cuda" else []
    rng = torch.get_rng_state()
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, value in zip(tensors, values, strict=True):
                tensor.copy_(value)
            for parameter, gradient, value in gradients:
                parameter.grad = gradient
                if gradient is not None:
                    gradient.copy_(value)
        for optimizer, state in states:
            optimizer.state.clear()
            optimizer.state.update(state)
        torch.set_rng_state(rng)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)


def _copy(state: Any) -> Any:
    if isinstance(state, torch.Tensor):
        return state.detach().clone()
    if isinstance(state, dict):
        return {name: _copy(value) for name, value in state.items()}
    return state
