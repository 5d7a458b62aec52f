import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memviz.core.failure import Cause, Failure
from memviz.core.files import Document, FormatError, dumps, from_json, load, loads, save, to_json
from memviz.core.plan import Action, Order, Plan, Rule, Swap
from memviz.core.run import Agreement, Gradients, Run
from memviz.core.simulate import simulate
from memviz.core.trace import Trace
from tests.core.chains import chain_trace

texts = st.text(max_size=8)
plans = st.builds(
    Plan,
    rules=st.lists(st.builds(Rule, pattern=texts.filter(str.strip), action=st.sampled_from(Action)), max_size=3).map(tuple),
    swap=st.none() | st.builds(Swap, occupancy=st.floats(0, 1), order=st.sampled_from(Order), limit=st.none() | st.integers(1, 2**40)),
    label=texts,
)


def run_of(plan: Plan, loss: float = 1.0) -> Run:
    return Run(
        title="t", plan=plan, timeline=simulate(chain_trace()), step_seconds=(0.5,), loss=loss,
        gradients=Gradients(agreement=Agreement.EXACT),
    )  # fmt: skip


@given(plan=plans, loss=st.floats())
def test_round_trip(plan, loss):
    document = Document(trace=chain_trace(), runs=(run_of(plan, loss),), failures=(Failure(cause=Cause.DIED, message="gone"),))
    back = loads(dumps(document))
    assert back.trace == document.trace
    assert back.failures == document.failures
    assert back.runs[0].plan == plan
    assert np.array_equal(back.runs[0].timeline.total, document.runs[0].timeline.total)
    assert to_json(back) == to_json(document)


def test_saved_file_is_read_back(tmp_path):
    path = save(tmp_path / "a.memviz.json", Document(trace=chain_trace()))
    assert load(path).trace == chain_trace()
    assert [file.name for file in tmp_path.iterdir()] == ["a.memviz.json"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "not a memviz file"),
        ("[1]", "not ours"),
        ('{"format": "memviz", "version": 2}', "newer memviz .format 2"),
        (dumps(Document(trace=chain_trace()))[:-40], "truncated"),
        (
            '{"format": "memviz", "version": 1, "document": {"runs": [{"title": 3}]}}',
            r"document\.runs\[0\]\.title is '3', but should be text",
        ),
    ],
)
def test_errors(text, words):
    with pytest.raises(FormatError, match=words):
        loads(text)


@pytest.mark.parametrize(("name", "words"), [("nbytes", "numbers that fit into int64"), ("seconds", "a number")])
def test_a_number_too_large_for_its_field_is_named(name, words):
    data = json.loads(dumps(Document(runs=(run_of(Plan()),))))
    timeline = data["document"]["runs"][0]["timeline"]
    (timeline["nbytes"]["activation"] if name == "nbytes" else timeline[name])[0] = 10**400
    with pytest.raises(FormatError, match=rf"timeline\.{name}.*{words}"):
        loads(json.dumps(data))


def test_unknown_fields_are_ignored_and_missing_ones_named():
    data = json.loads(json.dumps(to_json(chain_trace())))
    data["future"] = 1
    data["ops"][0]["future"] = 1
    assert from_json(Trace, data) == chain_trace()
    del data["ops"][0]["name"]
    with pytest.raises(FormatError, match=r"trace\.ops\[0\]\.name is missing"):
        from_json(Trace, data)
