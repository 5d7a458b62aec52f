"""From a workload's description to a training step on a device."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

import torch
from torch import Tensor, nn

from memviz.core.parameters import Setting
from memviz.workloads.description import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a model's module makes of the settings, on the CPU: the model, its inputs, and targets that ``loss`` compares its output with."""

    model: nn.Module
    inputs: tuple[Tensor, ...]
    targets: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    learning_rate: float = 0.01


def device_of(name: str) -> torch.device:
    """``auto``, ``cpu`` or ``cuda`` as a device; ValueError where there is no CUDA device to be had."""
    has_cuda = torch.cuda.is_available()
    if name == "cuda" and not has_cuda:
        msg = "device 'cuda': this machine's torch finds no CUDA device; use 'cpu', or 'auto' to take what there is"
        raise ValueError(msg)
    return torch.device("cuda" if has_cuda and name != "cpu" else "cpu")


def parts(workload: Workload) -> Parts:
    """The workload's parts, the same for the same settings, leaving torch's global generator as it was."""
    make: Callable[[Mapping[str, Setting]], Parts] = import_module(f"memviz.workloads.models.{workload.name}").parts
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(workload.settings["seed"]))
        return make(workload.settings)


def build(workload: Workload):
    """The workload as a TrainStep with SGD and momentum."""
    from memviz.pytorch.step import TrainStep

    device = device_of(workload.device)
    made = parts(workload)
    model = made.model.to(device)
    inputs = tuple(tensor.to(device) for tensor in made.inputs)
    targets = made.targets.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=made.learning_rate, momentum=0.9)
    return TrainStep(model, inputs, lambda output: made.loss(output, targets), optimizer, title=workload.heading)
