"""Ways in which people write a step, each against plain autograd, bit for bit."""

import warnings
from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import memviz as mv

PLANS = {
    "recompute": mv.Plan(rules={"*": "recompute"}),
    "swap": mv.Plan(rules={"*": "swap"}, swap=mv.Swap(min_bytes=0)),
    "mixed": mv.Plan(
        rules={"*": "swap", "*:*mul*": "recompute", "*:*add*": "recompute", "*:*sigmoid*": "recompute"}, swap=mv.Swap(min_bytes=0)
    ),
}
WAYS: dict[str, Callable[[mv.Plan | None], list[Tensor]]] = {}


def way(function: Callable[[mv.Plan | None], list[Tensor]]) -> Callable[[mv.Plan | None], list[Tensor]]:
    WAYS[function.__name__] = function
    return function


def under(plan: mv.Plan | None) -> object:
    return nullcontext() if plan is None else mv.apply(plan)


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 16),
        nn.Sigmoid(),
        nn.Dropout(0.3),
        nn.Linear(16, 8),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Linear(8, 8),
        nn.Tanh(),
        nn.Linear(8, 1),
    )


def smooth() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), nn.Sigmoid(), nn.Tanh(), nn.Linear(16, 1))


def of(model: nn.Module) -> list[Tensor]:
    return [*[p.grad for p in model.parameters()], *model.buffers()]


@way
def two_backwards(plan: mv.Plan | None) -> list[Tensor]:
    model, x = mlp(), torch.randn(6, 8)
    with under(plan):
        loss = model(x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return of(model)


@way
def double_backward(plan: mv.Plan | None) -> list[Tensor]:
    model, x = smooth(), torch.randn(6, 8, requires_grad=True)
    with under(plan):
        loss = model(x).pow(3).sum()
    (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
    gradient.pow(2).sum().backward()
    return [*of(model), x.grad]


@way
def a_gradient_penalty(plan: mv.Plan | None) -> list[Tensor]:
    model, x = smooth(), torch.randn(6, 8, requires_grad=True)
    with under(plan):
        (gradient,) = torch.autograd.grad(model(x).pow(3).sum(), x, create_graph=True)
        loss = gradient.pow(2).sum().sigmoid()
    loss.backward()
    return [*of(model), x.grad]


@way
def accumulated_gradients(plan: mv.Plan | None) -> list[Tensor]:
    model = mlp()
    for x in torch.randn(3, 6, 8):
        with under(plan):
            loss = model(x).sum()
        loss.backward()
    return of(model)


@way
def several_losses_and_part_of_the_graph(plan: mv.Plan | None) -> list[Tensor]:
    model, x = mlp(), torch.randn(6, 8, requires_grad=True)
    with under(plan):
        hidden = model[:3](x)
        first, second = model[3:](hidden).sum(), hidden.sigmoid().sum()
    part = torch.autograd.grad(second, [x], retain_graph=True)
    (first + second).backward()
    return [*part, *of(model)]


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_checkpoints_inside(plan: mv.Plan, *, reentrant: bool) -> None:
    def step(plan: mv.Plan | None) -> list[Tensor]:
        model, x = mlp(), torch.randn(6, 8, requires_grad=True)
        with under(plan):
            loss = checkpoint(model, x, use_reentrant=reentrant).sigmoid().sum()
        loss.backward()
        return of(model)

    check(step, plan)


@way
def inside_a_checkpoint(plan: mv.Plan | None) -> list[Tensor]:
    model, x = mlp(), torch.randn(6, 8, requires_grad=True)

    def planned(x: Tensor) -> Tensor:
        with under(plan):
            return model(x)

    checkpoint(planned, x, use_reentrant=False).sigmoid().sum().backward()
    return [p.grad for p in model.parameters()]  # not the statistics: a checkpoint that has nothing to recompute changes them once


@way
def other_hooks_inside(plan: mv.Plan | None) -> list[Tensor]:
    model, x = mlp(), torch.randn(6, 8)
    with under(plan):
        hidden = model[:3](x)
        with torch.autograd.graph.save_on_cpu():
            hidden = model[3:](hidden)
        loss = hidden.sigmoid().sum()
    loss.backward()
    return of(model)


@way
def autocast_around_forward(plan: mv.Plan | None) -> list[Tensor]:
    model, x = mlp(), torch.randn(6, 8)
    with under(plan), torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(x).float().sigmoid().sum()
    loss.backward()
    return of(model)


@way
def autocast_around_backward_too(plan: mv.Plan | None) -> list[Tensor]:
    model, x = mlp(), torch.randn(6, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with under(plan):
            loss = model(x).float().sigmoid().sum()
        loss.backward()
    return of(model)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor, factor: float) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(x, y)
        ctx.factor, ctx.unsaved = factor, x * 2
        return y * factor

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, None]:
        x, y = ctx.saved_tensors
        return gradient * y * ctx.factor + 0 * ctx.unsaved * x, None


@way
def a_function_of_ones_own(plan: mv.Plan | None) -> list[Tensor]:
    model, x = mlp(), torch.randn(6, 8)
    with under(plan):
        loss = Scaled.apply(model(x).sigmoid(), 3.0).sigmoid().sum()
    loss.backward()
    return of(model)


@way
def state_that_forward_changes(plan: mv.Plan | None) -> list[Tensor]:
    torch.manual_seed(0)
    norms = nn.utils.parametrizations
    model = nn.Sequential(
        norms.spectral_norm(nn.Linear(8, 8)), nn.Tanh(), norms.weight_norm(nn.Linear(8, 8)), nn.BatchNorm1d(8), nn.Linear(8, 1)
    )
    with under(plan):
        loss = model(torch.randn(6, 8)).sum()
    loss.backward()
    return of(model)


@way
def generators(plan: mv.Plan | None) -> list[Tensor]:
    model, x, generator = mlp(), torch.randn(6, 8), torch.Generator().manual_seed(5)
    with under(plan):
        hidden = model(x)
        hidden = (hidden * torch.empty_like(hidden).normal_(generator=generator)).sigmoid()
        hidden = hidden * torch.rand(hidden.shape, generator=generator).add_(1).log()
        loss = hidden.sum()
        with torch.random.fork_rng():
            torch.manual_seed(9)
            loss = loss + (functional.dropout(hidden, 0.5) * 2).sigmoid().sum()
    loss.backward()
    return [*of(model), torch.rand(2), torch.rand(2, generator=generator)]


@way
def writes_in_place(plan: mv.Plan | None) -> list[Tensor]:
    model, x = mlp(), torch.randn(6, 8)
    with under(plan):
        hidden = model(x).expand(6, 4).clone()
        hidden[1:3] = hidden[3:5].sigmoid()
        hidden[:, 0].mul_(2)
        hidden.index_put_((torch.tensor([0, 1]),), torch.ones(2, 4))
        hidden = functional.dropout(hidden.exp() * 1, 0.5, inplace=True).relu_().clone().add_(1)
        loss = hidden.log().sum()
    loss.backward()
    return of(model)


@way
def views_that_overlap(plan: mv.Plan | None) -> list[Tensor]:
    x = torch.randn(10, requires_grad=True)
    with under(plan):
        y = x.sigmoid()
        window = y.as_strided((4, 4), (2, 1)).exp().expand(3, 4, 4)
        loss = (window * window.sigmoid()).sum() + y[:0].sum() + y.unfold(0, 3, 1).tanh().sum()
    loss.backward()
    return [x.grad]


@way
def a_write_that_autograd_does_not_see(plan: mv.Plan | None) -> list[Tensor]:
    x = torch.randn(10, requires_grad=True)
    with under(plan):
        y = x.sigmoid()
        z = y * y.exp()
        y.data.mul_(0.5)
        loss = (z * y).sum()
    loss.backward()
    return [x.grad]


@way
def hooks(plan: mv.Plan | None) -> list[Tensor]:
    model, x, seen = mlp(), torch.randn(6, 8), []
    model[1].register_full_backward_hook(lambda _module, _inputs, outputs: seen.append(outputs[0].clone()))
    model[3].weight.register_hook(lambda gradient: gradient * 2)
    with under(plan):
        hidden = model(x)
        hidden.register_hook(lambda gradient: gradient + 1)
        loss = hidden.sigmoid().sum()
    loss.backward()
    return [*of(model), *seen]


@way
def complex_numbers(plan: mv.Plan | None) -> list[Tensor]:
    x = torch.randn(10, requires_grad=True)
    with under(plan):
        z = torch.complex(x.sigmoid(), x.exp())
        loss = (z.conj() * z * 1j).real.sigmoid().sum() + torch.fft.rfft(x.tanh()).abs().sum()
    loss.backward()
    return [x.grad]


@way
def a_fused_lstm(plan: mv.Plan | None) -> list[Tensor]:
    torch.manual_seed(0)
    model = nn.LSTM(8, 8, 2, dropout=0.2)
    with under(plan):
        loss = model(torch.randn(5, 3, 8))[0].sigmoid().sum()
    loss.backward()
    return of(model)


@way
def fused_attention(plan: mv.Plan | None) -> list[Tensor]:
    query = torch.randn(2, 4, 16, 8, requires_grad=True)
    with under(plan):
        loss = functional.scaled_dot_product_attention(query.sigmoid(), query.tanh(), query * 2, dropout_p=0.1, is_causal=True).sum()
    loss.backward()
    return [query.grad]


@way
def vmap(plan: mv.Plan | None) -> list[Tensor]:
    model, x = smooth(), torch.randn(6, 8)
    with under(plan):
        loss = torch.func.vmap(lambda row: model(row).sigmoid())(x).sum()
    loss.backward()
    return of(model)


@way
def nested_tensors(plan: mv.Plan | None) -> list[Tensor]:
    torch.manual_seed(2)
    layer = nn.Linear(8, 4)
    with under(plan), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.ones(3, 8), torch.ones(5, 8)], layout=torch.jagged)
        loss = sum(part.sigmoid().sum() for part in layer(nested).tanh().unbind())
    loss.backward()
    return [layer.weight.grad]


def check(step: Callable[[mv.Plan | None], list[Tensor]], plan: mv.Plan) -> None:
    torch.manual_seed(7)
    want = step(None)
    torch.manual_seed(7)
    got = step(plan)
    assert len(want) == len(got)
    assert all(torch.equal(a, b) for a, b in zip(want, got, strict=True) if a is not None or b is not None)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("step", WAYS.values(), ids=WAYS)
def test_same_bits_as_plain_autograd(step: Callable[[mv.Plan | None], list[Tensor]], plan: mv.Plan) -> None:
    check(step, plan)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_write_to_what_is_away_is_autograds_error(plan: mv.Plan) -> None:
    x = torch.randn(4, requires_grad=True)
    with mv.apply(plan):
        y = x.sigmoid()
        loss = y.exp().sum()
        with torch.no_grad():
            y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
