"""Reversal against plain autograd, and its memory against live storages."""

import copy
import math
import weakref

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from memviz.pytorch.reversible import ReversibleBlock, ReversibleSequence, reversing

WIDTH = 8


class LiveBytes(TorchDispatchMode):
    """The bytes of the storages made within that are alive, now and at most."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {id(leaf.untyped_storage()) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and id(leaf.untyped_storage()) not in given:
                self._born(leaf.untyped_storage())
        return result

    def _born(self, storage: torch.UntypedStorage) -> None:
        number, nbytes = id(storage), storage.nbytes()
        if number not in self._known:
            self._known[number] = weakref.ref(storage, lambda _: self._died(number, nbytes))
            self.now += nbytes
            self.peak = max(self.peak, self.now)

    def _died(self, number: int, nbytes: int) -> None:
        del self._known[number]
        self.now -= nbytes


class Scaled(nn.Module):
    """tanh(scale * x): saves activations, and next to nothing in weights."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return torch.tanh(self.scale * x)


class Counter(nn.Module):
    """Adds a buffer to its input, and one to the buffer: the output shows which value was used."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(1.5))
        self.register_buffer("count", torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.weight * self.count.clone()
        self.count += 1
        return y


class Pooled(nn.Sequential):
    """A shortcut with weights and statistics of its own."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(WIDTH, WIDTH, 1), nn.BatchNorm2d(WIDTH), nn.AvgPool2d(2))


def residual(stride: int = 1, dropout: float = 0.0) -> nn.Module:
    return nn.Sequential(nn.BatchNorm2d(WIDTH), nn.ReLU(), nn.Dropout(dropout), nn.Conv2d(WIDTH, WIDTH, 3, stride, padding=1))


def stage(*, down: bool = False, dropout: float = 0.0, count: int = 3) -> ReversibleSequence:
    torch.manual_seed(0)
    first = ReversibleBlock(residual(2, dropout), residual(1, dropout), shortcut=Pooled()) if down else None
    blocks = [ReversibleBlock(residual(1, dropout), residual(1, dropout)) for _ in range(count)]
    return ReversibleSequence([*([first] if first else []), *blocks], reverse=False)


def gradients(model: ReversibleSequence, x: Tensor, *, reverse: bool) -> list[Tensor]:
    """Of x and each weight, then the output and the buffers after."""
    twin = copy.deepcopy(model)
    twin.reverse = reverse
    x = x.clone().requires_grad_()
    torch.manual_seed(7)
    y = twin(x)
    (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)).sum().backward()
    return [x.grad, *(weight.grad for weight in twin.parameters()), y.detach(), *twin.buffers(), torch.get_rng_state()]


def images(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(4, 2 * WIDTH, 6, 6, dtype=dtype, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("down", [False, True])
def test_gradients_buffers_and_generator_are_those_of_plain_autograd(down: bool, dropout: float) -> None:
    model = stage(down=down, dropout=dropout).double()
    plain, rebuilt = (gradients(model, images(), reverse=reverse) for reverse in (False, True))
    num_gradients = 1 + len(list(model.parameters()))
    # A bias before batch norm has a gradient of zero but for rounding, so the angle is taken over all of them.
    for one, other in zip(plain[:num_gradients], rebuilt[:num_gradients], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
    one, other = (torch.cat([gradient.flatten() for gradient in some[:num_gradients]]) for some in (plain, rebuilt))
    assert math.degrees(math.acos(min(1.0, float(one @ other / one.norm() / other.norm())))) < 1
    for one, other in zip(plain[num_gradients:], rebuilt[num_gradients:], strict=True):
        # Halves are views in plain autograd and tensors in reversal, so that sums may be rounded differently.
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_gradients_are_close_in_float32_in_evaluation_mode_and_with_autocast() -> None:
    model = stage(down=True)
    plain, rebuilt = (gradients(model, images(torch.float32), reverse=reverse) for reverse in (False, True))
    torch.testing.assert_close(plain, rebuilt, rtol=1e-3, atol=1e-3)
    plain, rebuilt = (gradients(model.eval(), images(torch.float32), reverse=reverse) for reverse in (False, True))
    torch.testing.assert_close(plain, rebuilt, rtol=1e-3, atol=1e-3)
    with torch.autocast("cpu", torch.bfloat16):
        plain, rebuilt = (gradients(model, images(torch.float32), reverse=reverse) for reverse in (False, True))
    torch.testing.assert_close(plain, rebuilt, rtol=0.1, atol=0.1)


def test_backward_uses_the_modes_of_forward() -> None:
    model = stage().double()
    expected = gradients(model, images(), reverse=False)[0]
    model.reverse = True
    x = images().requires_grad_()
    y = model(x)
    model.eval()
    (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)).sum().backward()
    torch.testing.assert_close(x.grad, expected)
    assert not any(part.training for part in model.modules())


def test_a_buffer_that_forward_changes_is_rebuilt_from_its_earlier_value_and_changed_once() -> None:
    shared = Counter().double()
    model = ReversibleSequence([ReversibleBlock(shared, Counter().double()), ReversibleBlock(shared, Counter().double())])
    x = torch.randn(3, 4, dtype=torch.float64)
    for one, other in zip(*(gradients(model, x, reverse=reverse) for reverse in (False, True)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_each_module_runs_once_forward_and_once_backward() -> None:
    f, g = Scaled(), Scaled()
    ReversibleSequence([ReversibleBlock(f, g)], reverse=True)(torch.randn(2, 4)).sum().backward()
    assert (f.calls, g.calls) == (2, 2)


def step_bytes(depth: int, *, reverse: bool) -> tuple[int, int]:
    """Bytes alive at the end of forward, and at the peak of the step."""
    model = ReversibleSequence([ReversibleBlock(Scaled(), Scaled()) for _ in range(depth)], reverse=reverse)
    x = torch.randn(64, 256)
    with LiveBytes() as live:
        loss = model(x).sum()
        waiting = live.now
        loss.backward()
    return waiting, live.peak


def test_memory_does_not_grow_with_depth() -> None:
    (waiting, peak), (deep_waiting, deep_peak) = step_bytes(3, reverse=True), step_bytes(30, reverse=True)
    (plain, plain_peak), (deep_plain, deep_plain_peak) = step_bytes(3, reverse=False), step_bytes(30, reverse=False)
    assert waiting == deep_waiting <= 64 * 256 * 4 + 4
    assert deep_peak - peak <= 0.02 * (deep_plain_peak - plain_peak)
    assert deep_waiting - waiting <= 0.02 * (deep_plain - plain)


def test_weights_given_by_functional_call_get_the_gradient() -> None:
    model = stage(count=1).double()
    model.reverse = True
    doubled = {name: (2 * weight).detach().requires_grad_() for name, weight in model.named_parameters()}
    functional_call(model, doubled, (images(),)).square().sum().backward()
    assert all(weight.grad is None for weight in model.parameters())
    assert all(weight.grad is not None and weight.grad.any() for weight in doubled.values())


def test_saved_tensors_hooks_may_give_back_copies() -> None:
    model = stage(down=True).double()
    expected = gradients(model, images(), reverse=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.detach().clone(), lambda saved: saved):
        found = gradients(model, images(), reverse=True)
    torch.testing.assert_close(found, expected)


def test_frozen_weights_and_an_input_without_gradient() -> None:
    model = stage(count=1)
    model.reverse = True
    model[0].f.requires_grad_(False)
    model(images(torch.float32)).square().sum().backward()
    assert all(weight.grad is None for weight in model[0].f.parameters())
    assert all(weight.grad is not None for weight in model[0].g.parameters())


def test_a_weight_changed_before_backward_is_an_error() -> None:
    model = stage(count=1)
    model.reverse = True
    loss = model(images(torch.float32)).sum()
    with torch.no_grad():
        model[0].g[0].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_without_a_decision_it_is_plain_and_reversing_decides() -> None:
    model = ReversibleSequence([ReversibleBlock(Scaled(), Scaled())])
    x = torch.randn(2, 4)
    assert type(model(x).grad_fn).__name__ == "CatBackward0"
    with reversing(lambda sequence: sequence is model):
        assert type(model(x).grad_fn).__name__ == "_ReversedBackward"
    with torch.no_grad(), reversing(lambda _: True):
        assert model(x).grad_fn is None


def test_what_cannot_be_reversed_is_said() -> None:
    with pytest.raises(ValueError, match="start a new ReversibleSequence"):
        ReversibleSequence([ReversibleBlock(Scaled(), Scaled()), ReversibleBlock(Scaled(), Scaled(), shortcut=nn.Identity())])
    with pytest.raises(ValueError, match="one or more ReversibleBlocks"):
        ReversibleSequence([])
    with pytest.raises(ValueError, match="size 3 is odd"):
        ReversibleSequence([ReversibleBlock(Scaled(), Scaled())], reverse=True)(torch.randn(2, 3))
    with pytest.raises(ValueError, match="f changes its input in place"):
        ReversibleSequence([ReversibleBlock(nn.ReLU(inplace=True), Scaled())], reverse=True)(torch.randn(2, 4))
