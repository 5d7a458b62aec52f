"""Blocks whose input is rebuilt from their output in backward (E8), as in RevNet (Gomez et al., 2017).

>>> sequence = ReversibleSequence([ReversibleBlock(nn.Linear(2, 2), nn.Linear(2, 2)) for _ in range(50)], reverse=True)
>>> sequence(torch.randn(3, 4)).shape
torch.Size([3, 4])
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from memviz.pytorch.replaying import Call, call, replay

Pair = tuple[Tensor, Tensor]
_decide: ContextVar[Callable[["ReversibleSequence"], bool]] = ContextVar("reversing", default=lambda _: False)


@contextmanager
def reversing(decide: Callable[["ReversibleSequence"], bool]) -> Iterator[None]:
    """Within, ``decide`` says of each sequence made with ``reverse=None`` whether it reverses."""
    token = _decide.set(decide)
    try:
        yield
    finally:
        _decide.reset(token)


class ReversibleBlock(nn.Module):
    """``y1 = x1 + f(x2); y2 = x2 + g(y1)`` on the halves of a tensor.

    Args:
        f: Module from half to half; so is ``g``. Neither may change its input in place.
        g: See ``f``.
        shortcut: What each x half goes through beside f and g where the shape changes (downsampling). A block with one
            can't be inverted, so it can only be a sequence's first: there x is kept.
        dim: The dimension that is halved.
    """

    def __init__(self, f: nn.Module, g: nn.Module, *, shortcut: nn.Module | None = None, dim: int = 1) -> None:
        super().__init__()
        self.f = f
        self.g = g
        self.shortcut = shortcut
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """The block by plain autograd."""
        x1, x2 = halves(x, self.dim)
        if self.shortcut is None:
            y1 = x1 + self.f(x2)
            return torch.cat([y1, x2 + self.g(y1)], dim=self.dim)
        z1, z2 = self.shortcut(x1), self.shortcut(x2)
        y1 = z1 + self.f(x2)
        return torch.cat([y1, z2 + self.g(y1)], dim=self.dim)


class ReversibleSequence(nn.Sequential):
    """Reversible blocks one after another; reversed, what waits for backward does not grow with their number.

    Waiting are the last output, the input if the first block has a shortcut, and per block the random state and the
    buffers that its forward changed. Gradients are those of plain autograd up to rounding. Gradients of gradients are not supported.

    Args:
        blocks: At least one; only the first may have a shortcut.
        reverse: True reverses, False is plain autograd, None leaves it to the plan in force (plain where there is none).
    """

    def __init__(self, blocks: Iterable[ReversibleBlock], *, reverse: bool | None = None) -> None:
        super().__init__(*blocks)
        self.reverse = reverse
        blocks = list(self)
        if not blocks or any(not isinstance(block, ReversibleBlock) for block in blocks):
            msg = f"blocks are one or more ReversibleBlocks, not {[type(block).__name__ for block in blocks]}"
            raise ValueError(msg)
        late = [place for place, block in enumerate(blocks) if place and block.shortcut is not None]
        if late:
            msg = f"block {late[0]} has a shortcut and can't be inverted; start a new ReversibleSequence with it"
            raise ValueError(msg)
        if len({block.dim for block in blocks}) > 1:
            msg = "the blocks of a sequence halve the same dimension; give them all the same dim"
            raise ValueError(msg)

    def forward(self, x: Tensor) -> Tensor:
        """The blocks applied to x, reversed if that is wanted and a gradient may be."""
        reverse = _decide.get()(self) if self.reverse is None else self.reverse
        if not (reverse and torch.is_grad_enabled()):
            return super().forward(x)
        weights = [weight for weight in self.parameters() if weight.requires_grad]
        return _Reversed.apply(self, x, *weights)  # type: ignore[no-any-return]


def halves(x: Tensor, dim: int) -> Pair:
    """Both halves of x along dim, as views; ValueError for an odd size."""
    if x.shape[dim] % 2:
        msg = f"a reversible block halves dimension {dim}, whose size {x.shape[dim]} is odd; make it even"
        raise ValueError(msg)
    first, second = x.chunk(2, dim)
    return first, second


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluated:
    """The evaluations of one block's forward; ``shortcut`` those of both halves, or () where there is none."""

    f: Call
    g: Call
    shortcut: tuple[Call, ...]


class _Reversed(torch.autograd.Function):
    """A whole sequence as one node, so that no block's output is kept between its neighbours."""

    @staticmethod
    def forward(ctx: Any, sequence: ReversibleSequence, x: Tensor, *weights: Tensor) -> Tensor:
        """The blocks without a graph; ctx keeps what their backward needs beside the tensors."""
        blocks = list(sequence)
        dim = blocks[0].dim
        pair = halves(x, dim)
        ctx.evaluated = []
        for block in blocks:
            pair, evaluated = _forward(block, pair)
            ctx.evaluated.append(evaluated)
        y = torch.cat(pair, dim=dim)
        ctx.dim, ctx.weights = dim, weights
        # The weights are saved only for autograd's check that nobody changes them before backward: a hook may give back copies.
        kept = [] if blocks[0].shortcut is None else [x]
        ctx.save_for_backward(y, *kept, *weights)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of x and of the weights, from the last block to the first."""
        y, *kept = ctx.saved_tensors
        gradients = _Gradients(ctx.weights)
        pair, dpair = halves(y, ctx.dim), halves(dy, ctx.dim)
        del y
        for evaluated in reversed(ctx.evaluated):
            if evaluated.shortcut:
                dpair = _backward_with_downsample(halves(kept[0], ctx.dim), pair[0], dpair, evaluated, gradients)
            else:
                pair, dpair = _backward(pair, dpair, evaluated, gradients)
        return None, torch.cat(dpair, dim=ctx.dim), *gradients.totals


class _Gradients:
    """The sum of what each evaluation adds to each weight's gradient."""

    def __init__(self, weights: tuple[Tensor, ...]) -> None:
        self.weights = weights
        self.totals: list[Tensor | None] = [None] * len(weights)
        self._places = {id(weight): place for place, weight in enumerate(weights)}

    def through(self, call: Call, output: Tensor, x: Tensor, doutput: Tensor) -> Tensor:
        """The gradient of x, the leaf that the call's output came from; its weights' are added to ``totals``."""
        if not output.requires_grad:
            return torch.zeros_like(x)
        places = [self._places[id(weight)] for weight in call.weights.values() if weight.requires_grad]
        wanted = [x, *(self.weights[place] for place in places)]
        dx, *added = torch.autograd.grad(output, wanted, doutput.to(output.dtype), allow_unused=True)
        for place, more in zip(places, added, strict=True):
            total = self.totals[place]
            self.totals[place] = total if more is None else more if total is None else total + more
        return torch.zeros_like(x) if dx is None else dx


def _forward(block: ReversibleBlock, pair: Pair) -> tuple[Pair, _Evaluated]:
    x1, x2 = pair
    shortcut: tuple[Call, ...] = ()
    if block.shortcut is not None:
        z1, first = call(block.shortcut, x1, name="a reversible block's shortcut")
        z2, second = call(block.shortcut, x2, name="a reversible block's shortcut")
        shortcut = (first, second)
    else:
        z1, z2 = x1, x2
    fx2, f = call(block.f, x2, name="a reversible block's f")
    y1 = z1 + fx2
    gy1, g = call(block.g, y1, name="a reversible block's g")
    return (y1, z2 + gy1), _Evaluated(f=f, g=g, shortcut=shortcut)


def _evaluate(earlier: Call, x: Tensor, doutput: Tensor, gradients: _Gradients) -> Pair:
    """The call's value and the gradient of x, by the one evaluation that E8 allows; the graph is gone afterwards."""
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        output = replay(earlier, leaf)
    return output.detach(), gradients.through(earlier, output, leaf, doutput)


def _backward(y: Pair, dy: Pair, evaluated: _Evaluated, gradients: _Gradients) -> tuple[Pair, Pair]:
    """A block's input and its gradient."""
    gy1, dy1 = _evaluate(evaluated.g, y[0], dy[1], gradients)
    x2 = y[1] - gy1
    del gy1
    dx1 = dy[0] + dy1
    fx2, dx2 = _evaluate(evaluated.f, x2, dx1, gradients)
    return (y[0] - fx2, x2), (dx1, dy[1] + dx2)


def _backward_with_downsample(x: Pair, y1: Tensor, dy: Pair, evaluated: _Evaluated, gradients: _Gradients) -> Pair:
    """The gradient of x where x was kept and y1 rebuilt: through g, f, and the shortcut of each half."""
    dz1 = dy[0] + _evaluate(evaluated.g, y1, dy[1], gradients)[1]
    dx2 = _evaluate(evaluated.f, x[1], dz1, gradients)[1]
    first, second = evaluated.shortcut
    dx1 = _evaluate(first, x[0], dz1, gradients)[1]
    return dx1, dx2 + _evaluate(second, x[1], dy[1], gradients)[1]
