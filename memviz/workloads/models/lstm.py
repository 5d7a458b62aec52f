"""A long LSTM: one cell a layer, applied in a Python loop."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from memviz.core.parameters import Setting
from memviz.workloads.models.building import Parts


class LongLSTM(nn.Module):
    """(length, batch, units) -> the top layer's last state, (batch, units)."""

    def __init__(self, units: int, layers: int) -> None:
        super().__init__()
        self.cells = nn.ModuleList(nn.LSTMCell(units, units) for _ in range(layers))
        self.head = nn.Linear(units, units)

    def forward(self, sequence: Tensor) -> Tensor:
        zeros = sequence.new_zeros(sequence.shape[1:])
        states = [(zeros, zeros) for _ in self.cells]
        for inputs in sequence:
            signal = inputs
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(signal, states[layer])
                signal = states[layer][0]
        return self.head(states[-1][0])


def parts(settings: Mapping[str, Setting]) -> Parts:
    """Random sequences, and random vectors to end on."""
    units, batch = int(settings["units"]), int(settings["batch"])
    model = LongLSTM(units, int(settings["layers"]))
    sequence = torch.randn(int(settings["length"]), batch, units)
    return Parts(model=model, inputs=(sequence,), targets=torch.randn(batch, units), loss=functional.mse_loss)
