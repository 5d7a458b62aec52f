from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memviz.core.plan import Plan, Swap
from memviz.core.simulate import simulate
from memviz.core.trace import Category, Phase, Save, Trace
from tests.core.chains import op, value

NUM_OPS = 6


@st.composite
def traces(draw):
    """Any values over a few ops: some there before, some versions of one storage, some saved, some that outlive the step."""
    values = []
    for number in range(draw(st.integers(1, 8))):
        born, released, freed = sorted(draw(st.lists(st.integers(-1, NUM_OPS), min_size=3, max_size=3)))
        born = min(born, NUM_OPS - 1)
        made = value(
            number, f"m:aten::mm#0@{number}.0", draw(st.integers(0, 9)), draw(st.sampled_from(Category)), max(born, 0), released, freed
        )
        values.append(replace(made, born=born, storage=draw(st.integers(0, 4))))
    phases = [Phase.FORWARD] * 3 + [Phase.BACKWARD] * 3
    saved = draw(st.sets(st.sampled_from(values).map(lambda saved: saved.id)))
    return Trace(
        title="any",
        device="cpu",
        ops=tuple(op(index, "aten::mm", phase, "m", (), ()) for index, phase in enumerate(phases)),
        values=tuple(values),
        saves=tuple(Save(value=number, packed=max(values[number].born, 0), unpacked=(4,)) for number in sorted(saved)),
    )


def live_bytes(trace, index):
    """Each storage once, as large as its largest version that is there once the op has run."""
    largest = {}
    for each in trace.values:
        if each.born <= index and not each.born < each.freed <= index:
            largest[each.storage] = max(largest.get(each.storage, 0), each.nbytes)
    return sum(largest.values())


@given(traces())
def test_what_is_live_is_what_adding_up_the_storages_gives(trace):
    assert simulate(trace).total.tolist() == [live_bytes(trace, index) for index in range(NUM_OPS)]


@given(traces())
def test_following_every_value_gives_what_the_unplanned_step_does(trace):
    followed = simulate(trace, Plan(swap=Swap(min_bytes=0, occupancy=1.0, limit="1 TiB")))
    alone = simulate(trace)
    assert followed.holders == alone.holders
    assert followed.nbytes.keys() == alone.nbytes.keys()
    assert all(np.array_equal(followed.nbytes[kind], alone.nbytes[kind]) for kind in alone.nbytes)
