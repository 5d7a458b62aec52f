"""Evaluating a module twice with the effects of once: the same random numbers, buffers changed the first time only (E5)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

SMALL_BUFFER = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a module's evaluation depended on beside its input and weights.

    Attributes:
        module: What was evaluated.
        weights: Its parameters then; they may since have been swapped for others (``functional_call``).
        buffers: Those that it may have changed, as they were before.
        modes: Whether each of its modules was training.
        random: The state of each generator that it drew from, before; the CPU's is named ``cpu``.
        autocast: Whether autocast was on for the device, and its dtype.
    """

    module: nn.Module
    weights: dict[str, Tensor]
    buffers: dict[str, Tensor]
    modes: tuple[bool, ...]
    random: dict[torch.device, Tensor]
    device: torch.device
    autocast: tuple[bool, torch.dtype]


def call(module: nn.Module, x: Tensor, *, name: str = "the module") -> tuple[Tensor, Call]:
    """module(x), and what it takes to replay that; ValueError if it changes x in place."""
    version = x._version
    before = {path: buffer.detach().clone() for path, buffer in module.named_buffers()}
    random = _random_states(x.device)
    modes = tuple(part.training for part in module.modules())
    autocast = torch.is_autocast_enabled(x.device.type), torch.get_autocast_dtype(x.device.type)
    output = module(x)
    if x._version != version:
        msg = f"{name} changes its input in place, which a reversible block still needs; make its first op out of place"
        raise ValueError(msg)
    after = dict(module.named_buffers())
    buffers = {path: copy for path, copy in before.items() if _may_differ(copy, after.get(path))}
    drawn = {device: state for device, state in random.items() if not torch.equal(state, _random_states(x.device)[device])}
    weights = dict(module.named_parameters())
    return output, Call(module=module, weights=weights, buffers=buffers, modes=modes, random=drawn, device=x.device, autocast=autocast)


def replay(earlier: Call, x: Tensor) -> Tensor:
    """The same evaluation again, with nothing left changed but its output."""
    module = earlier.module
    buffers = {path: buffer.clone() for path, buffer in earlier.buffers.items()}
    enabled, dtype = earlier.autocast
    autocast = torch.autocast(earlier.device.type, dtype=dtype, enabled=enabled, cache_enabled=False)
    with _modes(module, earlier.modes), _random(earlier.random), autocast:
        return functional_call(module, earlier.weights | buffers, (x,), strict=False)


def _may_differ(before: Tensor, after: Tensor | None) -> bool:
    """Whether a buffer changed; a small one is said to have, without the wait for the device that looking costs.

    Version counters don't say: batch norm changes its statistics without counting.
    """
    return before.nbytes <= SMALL_BUFFER or after is None or before.shape != after.shape or not torch.equal(before, after)


def _random_states(device: torch.device) -> dict[torch.device, Tensor]:
    states = {torch.device("cpu"): torch.get_rng_state()}
    if device.type == "cuda":
        states[device] = torch.cuda.get_rng_state(device)
    return states


@contextmanager
def _random(states: dict[torch.device, Tensor]) -> Iterator[None]:
    cuda = [device for device in states if device.type == "cuda"]
    with torch.random.fork_rng(devices=cuda, enabled=bool(states)):
        for device, state in states.items():
            torch.cuda.set_rng_state(state, device) if device.type == "cuda" else torch.set_rng_state(state)
        yield


@contextmanager
def _modes(module: nn.Module, modes: tuple[bool, ...]) -> Iterator[None]:
    parts = list(module.modules())
    now = [part.training for part in parts]
    try:
        for part, training in zip(parts, modes, strict=True):
            part.training = training
        yield
    finally:
        for part, training in zip(parts, now, strict=True):
            part.training = training
