"""A small transformer encoder with dropout and GELU, normalizing before each half of a layer."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from memviz.core.parameters import Setting
from memviz.workloads.models.building import Parts

VOCABULARY = 256


class Layer(nn.Module):
    """Attention and a GELU network, each behind a layer norm and beside a shortcut; shape unchanged."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * width, width))
        self.attention_dropout = nn.Dropout(dropout)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        split = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = split.unbind(0)
        scores = query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5
        mixed = self.attention_dropout(scores.softmax(dim=-1)) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attend(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    """(batch, length) tokens -> (batch, length, 256)."""

    def __init__(self, *, layers: int, width: int, heads: int, length: int, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential(*(Layer(width, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(self.dropout(self.tokens(tokens) + self.positions))))


def _loss(output: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(output.flatten(0, 1), targets.flatten())


def parts(settings: Mapping[str, Setting]) -> Parts:
    """Random tokens, and a random class for each; ValueError where the heads don't divide the width."""
    width, heads, length, batch = (int(settings[name]) for name in ("width", "heads", "length", "batch"))
    if width % heads:
        msg = f"width {width} is not a multiple of heads {heads}; try width={(width // heads + 1) * heads}"
        raise ValueError(msg)
    model = Transformer(layers=int(settings["layers"]), width=width, heads=heads, length=length, dropout=float(settings["dropout"]))
    tokens, targets = torch.randint(VOCABULARY, (2, batch, length))
    return Parts(model=model, inputs=(tokens,), targets=targets, loss=_loss)
