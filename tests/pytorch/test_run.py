"""Runs against numbers worked out by hand, and E10."""

import copy

import pytest
import torch
from torch import nn

import memviz as mv
from memviz.core.failure import OutOfMemoryError


class Chain(nn.Module):
    """Four sigmoids of 40,000 bytes each behind one weight of the same size."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 10_000))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.weight
        for _ in range(4):
            y = torch.sigmoid(y)
        return y


def chain() -> mv.TrainStep:
    return mv.TrainStep(Chain(), torch.ones(10_000), lambda output: output.sum())


def test_activations_are_the_saved_bytes() -> None:
    plain = mv.run(chain(), repeats=1)
    # the four sigmoid outputs, the loss and the gradient that backward starts from; the input and the weight are held anyway
    assert plain.activations == 4 * 40_000 + 8
    dropped = mv.run(chain(), mv.Plan(rules={"*:sigmoid": "recompute"}), repeats=1)
    # the output of the last is still held by nobody once summed
    assert dropped.activations == 8
    assert dropped.gradients.agreement == "exact"
    assert dropped.recomputed_ops > 0


def test_swapping_moves_what_waits() -> None:
    run = mv.run(chain(), mv.Plan(swap=mv.Swap(occupancy=0.0, limit="1 MiB")), repeats=1)
    assert run.gradients.agreement == "exact"
    assert run.swapped_out >= 3 * 40_000
    assert run.activations <= 40_000 + 8


def test_a_limit_is_real() -> None:
    with pytest.raises(OutOfMemoryError, match=r"aten::sigmoid in the model asked for 39.1 KiB") as caught:
        mv.run(chain(), limit=190_000)
    assert caught.value.failure.limit == 190_000
    holders = caught.value.failure.holders
    assert (holders[0].op, holders[0].count, holders[0].nbytes) == ("aten::sigmoid", 2, 80_000)  # not the one that was refused
    assert sum(holder.nbytes for holder in holders) == caught.value.failure.live
    with pytest.raises(ValueError, match="parameters and buffers alone need 40000"):
        mv.run(chain(), limit=100)


def test_a_rule_that_changes_nothing_is_warned_of() -> None:
    step = mv.TrainStep(nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)), torch.randn(8, 4), lambda output: output.mean())
    with pytest.warns(RuntimeWarning, match=r"the rule 'blocks\.\*' matched nothing in Sequential"):
        mv.run(step, mv.Plan(rules={"1:relu_": "recompute", "blocks.*": "recompute"}), repeats=0)
    with pytest.warns(RuntimeWarning, match="'0' reverses nothing: only a whole ReversibleSequence can be reversed, and there is none"):
        mv.run(step, mv.Plan(rules={"0": "reverse"}), repeats=0)
    mv.run(step, mv.Plan(rules={"1:relu_": "recompute"}), repeats=0)


@pytest.mark.parametrize("plan", ["heuristics", {"*": "recompute"}])
def test_what_is_no_plan_is_named(plan: object) -> None:
    with pytest.raises(ValueError, match=r"plan is a mv\.Plan"):
        mv.run(chain(), plan)  # type: ignore[arg-type]


def test_nothing_of_the_users_changes() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    step = mv.TrainStep(model, torch.randn(8, 4), lambda output: output.mean(), optimizer)
    step()
    before = copy.deepcopy((model.state_dict(), [p.grad for p in model.parameters()], optimizer.state_dict(), torch.get_rng_state()))
    run = mv.run(step, mv.Plan(rules={"*": "recompute"}), repeats=1)
    assert run.gradients.agreement == "exact"
    after = (model.state_dict(), [p.grad for p in model.parameters()], optimizer.state_dict(), torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(before[0].values(), after[0].values(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(before[1], after[1], strict=True))
    for number, state in before[2]["state"].items():
        assert all(torch.equal(tensor, after[2]["state"][number][name]) for name, tensor in state.items())
    assert torch.equal(before[3], after[3])


@pytest.mark.parametrize(
    ("loss_fn", "message"),
    [(lambda output: output, "must be a scalar tensor, but is"), (lambda output: output.sum().detach(), "does not require grad")],
)
def test_a_loss_that_cannot_be_differentiated(loss_fn: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mv.run(mv.TrainStep(Chain(), torch.ones(10_000), loss_fn))


def test_a_step_without_backward() -> None:
    model = nn.Linear(2, 1)

    def step() -> torch.Tensor:
        return model(torch.ones(1, 2)).sum()

    with pytest.raises(ValueError, match="call backward in it"):
        mv.run(step)


def test_a_model_alone_is_no_step() -> None:
    with pytest.raises(ValueError, match=r"mv\.TrainStep"):
        mv.run(nn.Linear(1, 1))
