import pytest
from hypothesis import given
from hypothesis import strategies as st

import memviz as mv
from memviz.core.keys import Key
from memviz.core.plan import Action, Order, Plan, Rule, Swap
from memviz.figures.snippet import plan_source, training_lines

PATTERNS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
RULES = st.dictionaries(PATTERNS, st.sampled_from(Action), max_size=4)
SWAPS = st.builds(
    Swap,
    min_bytes=st.integers(0, 2**40),
    occupancy=st.floats(0, 1),
    limit=st.none() | st.integers(1, 2**40),
    order=st.sampled_from(Order),
    prefetch=st.integers(0, 9),
    target=st.sampled_from(["auto", "host", "disk"]),
)
PLANS = st.builds(Plan, rules=RULES, swap=st.none() | SWAPS, label=st.text(st.characters(codec="utf-8"), max_size=12))


@given(PLANS)
def test_the_lines_make_the_same_plan_again(plan):
    assert eval(plan_source(plan), {"mv": mv}) == plan
    compile(training_lines(plan), "snippet", "exec")


def test_of_equal_patterns_the_last_one_is_written_where_it_stood():
    rules = tuple(Rule(pattern=pattern, action=action) for pattern, action in [("a", "keep"), ("*", "recompute"), ("a", "swap")])
    made = eval(plan_source(Plan(rules=rules)), {"mv": mv})
    assert [(rule.pattern, rule.action) for rule in made.rules] == [("*", Action.RECOMPUTE), ("a", Action.SWAP)]
    for module in ("a", "b"):
        key = Key(module=module, op="aten::relu", output=0, call=0, nth=0)
        assert made.action(key) == Plan(rules=rules).action(key)


@pytest.mark.parametrize("plan", [Plan(rules={"1": "recompute"}, label="lean"), Plan(swap=Swap(min_bytes=0, occupancy=0.0, limit="1 GiB"))])
def test_the_lines_train_a_model_as_without_them(plan):
    import torch
    from torch import nn

    def trained(lines):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))
        batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(2)]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        exec(lines, {"model": model, "batches": batches, "loss_fn": nn.functional.mse_loss, "optimizer": optimizer})
        return [parameter.detach() for parameter in model.parameters()]

    lines = training_lines(plan)
    plain = lines.replace("with mv.apply(plan):", "if True:")
    assert plain != lines
    assert all(torch.equal(one, other) for one, other in zip(trained(lines), trained(plain), strict=True))
