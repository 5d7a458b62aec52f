"""Every action against plain autograd, bit for bit."""

import contextlib
import copy
import errno
import gc
import tempfile
import threading
import time
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn

import memviz as mv
from memviz.core.plan import Action, Rule
from memviz.pytorch import transport
from memviz.pytorch.apply import Engine
from memviz.pytorch.reversible import ReversibleBlock, ReversibleSequence
from memviz.pytorch.tracing import Tracer


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.bn1, self.bn2 = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu_(self.bn1(self.conv1(x)))
        return torch.relu(x + self.drop(self.bn2(self.conv2(h))))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(8, 8), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = (x.new_zeros(x.shape[1], 8), x.new_zeros(x.shape[1], 8))
        for step in x:
            state = self.cell(step, state)
        return self.head(state[0])


class Siblings(nn.Module):
    """Chunks of one storage, written in place one after the other, whose version counters do not know of each other."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b, c = self.linear(x).unsafe_chunk(3, 1)
        a, b, c = a.sigmoid_(), b.tanh_(), c.sigmoid_()
        return a * b + b * c


class Odd(nn.Module):
    """An op that writes to what it has saved (rrelu), a factory's result changed in place, statistics that are read, sparse tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8).eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.rrelu(self.norm(x * 2), training=True)
        ramp = torch.arange(8.0).mul_(0.5)
        eye = torch.eye(8).to_sparse()
        return torch.sigmoid(y * ramp) + torch.sparse.mm(eye, x.t()).t()


class InPlace(nn.Module):
    """Chains of writes before and after saves, views, splits and an input that is changed."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        y = torch.sigmoid(x)
        x.mul_(2)
        left, right = self.a(x + y).chunk(2, dim=1)
        z = left.contiguous().mul_(1.5).add_(0.5)
        noise = torch.randn_like(z).mul_(0.1)
        z = z.exp() * noise
        z[:, :4] *= right[:, 4:]
        return self.b(torch.tanh(z).view(-1, 8)).cumsum(0) * torch.arange(1.0, 9)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *[nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, activation="gelu", batch_first=True) for _ in range(2)]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


CASES = {
    "residual": (lambda: nn.Sequential(Residual(), Residual()), (2, 4, 6, 6)),
    "recurrent": (Recurrent, (30, 3, 8)),
    "siblings": (Siblings, (40, 8)),
    "odd": (Odd, (40, 8)),
    "in-place": (InPlace, (5, 8)),
    "attention": (Attention, (2, 5, 16)),
}
PLANS = {
    "keep": mv.Plan(),
    "recompute all": mv.Plan(rules={"*": "recompute"}),
    "swap all": mv.Plan(rules={"*": "swap"}, swap=mv.Swap(min_bytes=0)),
    "swap when full": mv.Plan(swap=mv.Swap(min_bytes=0, occupancy=0.5, limit="1 KiB", prefetch=1)),
    "some, each kept sibling a tempting source": mv.Plan(rules={"*:sigmoid_@*.1": "recompute", "*:tanh*": "recompute"}),
    "both": mv.Plan(
        rules={"*": "swap", "*:relu*": "recompute", "*:*mul*": "recompute", "*:*norm*": "recompute"}, swap=mv.Swap(min_bytes=0)
    ),
}


def outcome(model: nn.Module, shape: tuple[int, ...], plan: mv.Plan | None, *, inside: bool) -> tuple[list[torch.Tensor], Engine | None]:
    model = copy.deepcopy(model)
    torch.manual_seed(7)
    x = torch.randn(shape, requires_grad=True)
    engine = None
    if plan is None:
        loss = model(x).square().mean()
        loss.backward()
    else:
        with mv.apply(plan) as engine:
            loss = model(x).square().mean()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
    return [loss.detach(), x.grad, *[p.grad for p in model.parameters()], *model.buffers(), torch.rand(3)], engine


@pytest.mark.parametrize("inside", [False, True], ids=["backward after", "backward inside"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_same_bits_as_plain_autograd(case: tuple, plan: mv.Plan, *, inside: bool) -> None:
    make, shape = case
    torch.manual_seed(1)
    model = make()
    want, _ = outcome(model, shape, None, inside=inside)
    got, engine = outcome(model, shape, plan, inside=inside)
    assert all(torch.equal(a, b) for a, b in zip(want, got, strict=True))
    if any(rule == Rule(pattern="*", action=Action.RECOMPUTE) for rule in plan.rules):
        assert engine.tally.ops > 0
    swaps = any(rule.action == "swap" for rule in plan.rules) or (plan.swap and plan.swap.limit)
    if swaps and not inside:  # a backward that comes at once may need a value before it has left
        assert engine.swapper.swapped_out > 0
        assert engine.swapper.swapped_in > 0


def made_by(model: nn.Module) -> list[weakref.ref]:
    """The storages of what each module puts out, as they come."""
    storages = []
    for module in model.modules():
        module.register_forward_hook(lambda _module, _inputs, output: storages.append(weakref.ref(output.untyped_storage())))
    return storages


def test_a_dropped_value_is_really_gone() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    storages = made_by(model)
    with mv.apply(mv.Plan(rules={"1": "recompute", "3": "recompute"})) as engine:
        loss = model(torch.randn(2, 4)).sum()
    assert [storage() is None for storage in storages[:5]] == [True, True, True, True, True]
    loss.backward()
    assert engine.tally.ops == 4  # Both activations, and both products, which nobody else saves.


@pytest.mark.parametrize(
    "plan",
    [
        mv.Plan(rules={"1": "recompute"}),
        mv.Plan(swap=mv.Swap(limit="8 GiB", min_bytes=0)),
        mv.Plan(rules={"*": "swap"}, swap=mv.Swap(limit="8 GiB", min_bytes=0)),
    ],
    ids=["recompute", "swap when full", "swap"],
)
def test_a_forward_without_a_backward_leaves_nothing(plan: mv.Plan) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 4), nn.Tanh(), nn.BatchNorm1d(4), nn.Linear(4, 1))
    storages = made_by(model)
    gc.collect()
    gc.disable()  # A node that holds its own output holds itself, in a way that the collector can't see.
    try:
        with mv.apply(plan):
            y = model(torch.randn(3, 4))
        del y
        assert all(storage() is None for storage in storages)
    finally:
        gc.enable()


class Twice(nn.Module):
    """A model that takes another path when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.norm = nn.BatchNorm1d(6)
        self.path = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            x = torch.sigmoid(layer(x))
            if self.path != number:
                x = torch.relu_(self.norm(x) * torch.tanh(x))
            if self.path == 3:
                x = (x + 1).mul_(2)
        return x


@pytest.mark.parametrize("rules", [{"*": "recompute"}, {"*:sigmoid": "recompute", "*:relu_": "recompute", "*:mul": "recompute"}])
def test_later_steps_remember_only_what_the_first_needed_and_a_new_path_is_exact(rules: dict[str, str]) -> None:
    torch.manual_seed(3)
    models = [Twice() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    plan, counts = mv.Plan(rules=rules), []
    for path in (0, 0, 0, 1, 1, 3, 3, 0, 2, 2, 0):
        x = torch.randn(5, 6)
        for model, context in zip(models, (contextlib.nullcontext(), mv.apply(plan)), strict=True):
            model.path = path
            with context:
                loss = model(x).square().sum()
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(parameter.grad * 0.01)
        counts.append((bool(context.scope.wanted), context.tally.ops))
        for one, other in zip(models[0].state_dict().values(), models[1].state_dict().values(), strict=True):
            assert torch.equal(one, other)
    assert [bound for bound, _ in counts[:3]] == [False, True, True]
    assert counts[0][1] == counts[1][1] == counts[2][1] > 0
    assert [bound for bound, _ in counts[6:]] != [False] * 5


def test_a_write_to_a_kept_tensor_is_autograds_error() -> None:
    x = torch.randn(4, requires_grad=True)
    with mv.apply(mv.Plan()):
        y = x.exp()
        loss = y.sum()
        with torch.no_grad():
            y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_parameter_changed_before_backward_is_an_error_not_a_wrong_gradient() -> None:
    layer, x = nn.Linear(4, 4), torch.randn(2, 4)
    with mv.apply(mv.Plan(rules={"*": "recompute"})):
        loss = torch.tanh(layer(x)).sum()
    with torch.no_grad():
        layer.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified in place after the forward pass"):
        loss.backward()


def test_apply_names_what_it_was_given() -> None:
    with pytest.raises(ValueError, match="apply takes a Plan"):
        mv.apply("heuristics")


def open_files() -> set[str]:
    """What this process has open, by descriptor and name."""
    return {f"{link.name} {link.readlink()}" for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}


def test_a_swapped_value_is_in_a_file_that_no_folder_shows() -> None:
    before, files = set(Path(tempfile.gettempdir()).iterdir()), open_files()
    x = torch.randn(1000, requires_grad=True)
    with mv.apply(mv.Plan(rules={"*": "swap"}, swap=mv.Swap(min_bytes=0))) as engine:
        loss = torch.sigmoid(torch.sigmoid(x)).sum()
    assert engine.swapper.swapped_out > 0
    assert len(open_files() - files) == 1
    assert set(Path(tempfile.gettempdir()).iterdir()) <= before
    loss.backward()


def swap_step(*, backward: bool) -> None:
    x = torch.randn(1000, requires_grad=True)
    with mv.apply(mv.Plan(rules={"*": "swap"}, swap=mv.Swap(min_bytes=0))):
        loss = torch.sigmoid(torch.sigmoid(x)).sum()
    if backward:
        loss.backward()


@pytest.mark.parametrize("backward", [True, False])
def test_swapping_leaves_nothing_behind(*, backward: bool) -> None:
    gc.collect()
    before = open_files()
    gc.disable()  # what waits for the garbage collector was left behind
    try:
        swap_step(backward=backward)
        for _ in range(50):
            if open_files() <= before and not any(thread.name.startswith("memviz-swap") for thread in threading.enumerate()):
                break
            time.sleep(0.05)
        assert open_files() <= before
        assert not any(thread.name.startswith("memviz-swap") for thread in threading.enumerate())
    finally:
        gc.enable()


def test_nothing_of_a_step_waits_for_the_garbage_collector() -> None:
    x = torch.randn(1000)
    model = nn.Sequential(nn.Linear(1000, 1000), nn.ReLU(), nn.Dropout(0.5), nn.Linear(1000, 1))
    gc.collect()
    gc.disable()
    try:
        gone = weakref.ref(x.untyped_storage())
        with mv.apply(mv.Plan(rules={"*": "recompute"})):
            loss = model(x).sum()
        loss.backward()
        del loss, x
        assert gone() is None
    finally:
        gc.enable()


def test_a_chain_of_thousands() -> None:
    x = torch.ones(2, requires_grad=True)
    with mv.apply(mv.Plan(rules={"*": "recompute"})):
        y = x
        for _ in range(5000):
            y = torch.sigmoid(y)
        loss = y.sum()
    loss.backward()
    assert x.grad is not None


def test_a_full_disk_is_a_warning_and_the_gradients_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_disk: object, _offset: int, _storage: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    torch.manual_seed(1)
    model = Recurrent()
    want, _ = outcome(model, (5, 3, 8), None, inside=False)
    monkeypatch.setattr(transport, "_write", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        got, _ = outcome(model, (5, 3, 8), mv.Plan(rules={"*": "swap"}, swap=mv.Swap(min_bytes=0)), inside=False)
    assert all(torch.equal(a, b) for a, b in zip(want, got, strict=True))


def test_siblings_of_one_storage_move_once() -> None:
    model, x = Siblings(), torch.randn(40, 8)
    with mv.apply(mv.Plan(swap=mv.Swap(min_bytes=0, occupancy=0.5, limit="16 KiB"))) as engine:
        loss = model(x).sum()
    loss.backward()
    keys = [transfer.key for transfer in engine.swapper.transfers if transfer.out]
    assert len(keys) == len(set(keys))
    assert engine.swapper.swapped_out <= 2 * 40 * 24 * 4


def test_a_plan_reverses() -> None:
    blocks = [ReversibleBlock(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(4)]
    model = nn.Sequential(ReversibleSequence(blocks), nn.Linear(8, 1))
    x = torch.randn(3, 8)
    model(x).sum().backward()
    want = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    saved = []
    with Engine(mv.Plan(rules={"0": "reverse"}), {"": model}, on_save=saved.append):
        loss = model(x).sum()
    plain = []
    with Engine(mv.Plan(), {"": model}, on_save=plain.append):
        model(x)
    assert [len([tensor for tensor in found if tensor.shape[0] == len(x)]) for found in (saved, plain)] == [2, 9]
    loss.backward()
    for gradient, parameter in zip(want, model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-5)


def test_a_plan_without_rules_for_ops_sees_none(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(Tracer, "__torch_dispatch__", lambda _self, func, _types, args=(), kwargs=None: seen.append(func))
    for plan in (mv.Plan(), mv.Plan(rules={"*": "keep"}), mv.Plan(swap=mv.Swap(limit="1 GiB"))):
        with mv.apply(plan) as engine:
            torch.ones(2) + 1
        assert engine.swapper is None
    assert not seen
