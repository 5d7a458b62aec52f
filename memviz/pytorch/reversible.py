"""Blocks whose input is rebuilt from their output in backward (E8), as in RevNet (Gomez et al., 2017).

>>> sequence = ReversibleSequence([ReversibleBlock(nn.Linear(2, 2), nn.Linear(2, 2)) for _ in range(50)], reverse=True)
>>> sequence(torch.randn(3, 4)).shape
torch.Size([3, 4])
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

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
        beside = self.shortcut or nn.Identity()
        y1 = beside(x1) + self.f(x2)
        return torch.cat([y1, beside(x2) + self.g(y1)], dim=self.dim)


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


class _Reversed(torch.autograd.Function):
    """A whole sequence as one node, so that no block's output is kept between its neighbours."""

    @staticmethod
    def forward(ctx: FunctionCtx, sequence: ReversibleSequence, x: Tensor, *weights: Tensor) -> Tensor:
        blocks = list(sequence)
        dim = blocks[0].dim
        pair = halves(x, dim)
        ctx.calls = []  # type: ignore[attr-defined]
        for block in blocks:
            pair, calls = _forward(block, pair)
            ctx.calls.append((block, *calls))  # type: ignore[attr-defined]
        y = torch.cat(pair, dim=dim)
        ctx.dim, ctx.num_weights = dim, len(weights)  # type: ignore[attr-defined]
        # The weights are saved for autograd's check that nobody changes them before backward.
        ctx.save_for_backward(y, *weights, *([x] if blocks[0].shortcut else []))  # type: ignore[attr-defined]
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
        y, *saved = ctx.saved_tensors
        weights, kept = saved[: ctx.num_weights], saved[ctx.num_weights :]
        gradients = Gradients(weights)
        pair, dpair = halves(y, ctx.dim), halves(dy, ctx.dim)
        del y
        for block, f, g in reversed(ctx.calls):
            if block.shortcut is None:
                pair, dpair = _backward(pair, dpair, f, g, gradients)
            else:
                dpair = _backward_with_downsample(block.shortcut, halves(kept[0], ctx.dim), pair[0], dpair, f, g, gradients)
        return None, torch.cat(dpair, dim=ctx.dim), *gradients.totals


class Gradients:
    """The sum of what each evaluation adds to each weight's gradient."""

    def __init__(self, weights: list[Tensor]) -> None:
        self.weights = weights
        self.totals: list[Tensor | None] = [None] * len(weights)

    def through(self, output: Tensor, x: Tensor, doutput: Tensor) -> Tensor:
        """The gradient of x, a leaf that output was computed from; the weights' are added to ``totals``."""
        if not output.requires_grad:
            return torch.zeros_like(x)
        dx, *added = torch.autograd.grad(output, [x, *self.weights], doutput, allow_unused=True)
        for place, more in enumerate(added):
            if more is not None:
                total = self.totals[place]
                self.totals[place] = more if total is None else total + more
        return torch.zeros_like(x) if dx is None else dx


def _forward(block: ReversibleBlock, pair: Pair) -> tuple[Pair, tuple[Call, Call]]:
    x1, x2 = pair
    beside = block.shortcut or nn.Identity()
    fx2, f = call(block.f, x2, name="a reversible block's f")
    y1 = beside(x1) + fx2
    gy1, g = call(block.g, y1, name="a reversible block's g")
    return (y1, beside(x2) + gy1), (f, g)


def _leaf(x: Tensor) -> Tensor:
    return x.detach().requires_grad_()


def _backward(y: Pair, dy: Pair, f: Call, g: Call, gradients: Gradients) -> tuple[Pair, Pair]:
    """A block's input and its gradient: one evaluation of g and of f each, for the value and for the gradient."""
    y1, y2 = _leaf(y[0]), y[1]
    with torch.enable_grad():
        gy1 = replay(g, y1)
    dx1 = dy[0] + gradients.through(gy1, y1, dy[1])
    x2 = _leaf(y2 - gy1.detach())
    del gy1
    with torch.enable_grad():
        fx2 = replay(f, x2)
    dx2 = dy[1] + gradients.through(fx2, x2, dx1)
    x1 = y1.detach() - fx2.detach()
    return (x1, x2.detach()), (dx1, dx2)


def _backward_with_downsample(
    shortcut: nn.Module, x: Pair, y1: Tensor, dy: Pair, f: Call, g: Call, gradients: Gradients
) -> Pair:
    """The gradient of x where x was kept and y1 rebuilt: g, then f, then both halves through the shortcut."""
    y1 = _leaf(y1)
    with torch.enable_grad():
        gy1 = replay(g, y1)
    dz1 = dy[0] + gradients.through(gy1, y1, dy[1])
    del gy1
    x1, x2 = _leaf(x[0]), _leaf(x[1])
    with torch.enable_grad():
        fx2 = replay(f, x2)
    dx2 = gradients.through(fx2, x2, dz1)
    del fx2
    with torch.enable_grad():
        z1, z2 = shortcut(x1), shortcut(x2)
    return gradients.through(z1, x1, dz1), dx2 + gradients.through(z2, x2, dy[1])
