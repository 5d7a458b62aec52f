"""A training step written out in plain torch: the oracle, which knows nothing of how memviz steps, restores or compares."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is trained: a fresh model, its keyword or positional inputs, and the scalar to differentiate."""

    model: Callable[[], nn.Module]
    inputs: tuple[Tensor, ...] | dict[str, Tensor]
    loss: Callable[[Any], Tensor]


def trained(case: Case, context: Callable[[nn.Module], AbstractContextManager[object]], *, steps: int = 2) -> dict[str, Tensor]:
    """Everything that some steps leave behind, by name; ``context`` is entered around each forward."""
    torch.manual_seed(11)
    model = case.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    left: dict[str, Tensor] = {}
    for number in range(steps):
        optimizer.zero_grad()
        with context(model):
            output = model(**case.inputs) if isinstance(case.inputs, dict) else model(*case.inputs)
            loss = case.loss(output)
        left[f"{number} loss"] = loss.detach().clone()
        left |= {f"{number} output {at}": tensor.detach().clone() for at, tensor in enumerate(tensors(output))}
        loss.backward()
        left |= {f"{number} gradient of {name}": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
        left |= {f"{number} {name}": p.detach().clone() for name, p in model.named_parameters()}
        left |= {f"{number} {name}": buffer.clone() for name, buffer in model.named_buffers()}
        left[f"{number} random state"] = torch.get_rng_state()
    left |= {f"momentum {at}": state["momentum_buffer"].clone() for at, state in enumerate(optimizer.state.values())}
    return left


def tensors(output: Any) -> list[Tensor]:
    """The tensors of a model's output."""
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, tuple | list) else [output]
    return [part for part in parts if isinstance(part, Tensor)]


def differing(want: dict[str, Tensor], got: dict[str, Tensor]) -> list[str]:
    """The names of what is not the same, bit for bit."""
    return [name for name in want.keys() | got.keys() if name not in want or name not in got or not torch.equal(want[name], got[name])]
