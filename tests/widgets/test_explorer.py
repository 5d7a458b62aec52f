"""The layout, driven through its values and without a browser."""

from memviz.core.events import Finished, Recorded, Sample, Samples
from memviz.core.parameters import Parameter
from memviz.core.plan import Plan
from memviz.core.run import Agreement, Gradients, Run
from memviz.core.trace import Category, Phase
from memviz.widgets.explorer import Explorer
from tests.widgets.test_session import TRACE, Scripted, session

LENGTH = Parameter(name="length", default=4, help="Steps.", minimum=1)


def test_samples_are_drawn_and_a_run_is_listed():
    backend = Scripted(Recorded(trace=TRACE), None)
    explorer = Explorer(session(backend).collaborators)
    explorer.session.run()
    sample = Sample(op=3, seconds=0.1, phase=Phase.FORWARD, nbytes={Category.PARAMETER: 2**20, Category.ACTIVATION: 2**21})
    backend.listeners[1](Samples(samples=(sample,)))
    live = explorer.children[2].children[1].children[0].data[-1]
    assert (list(live.x), list(live.y)) == ([3], [3.0])
    exact = Gradients(agreement=Agreement.EXACT)
    run = Run(title="empty", plan=Plan(label="<a>"), timeline=explorer.state.predicted, step_seconds=(1.0,), loss=0.0, gradients=exact)
    backend.listeners[1](Finished(run=run))
    assert "&lt;a&gt;" in explorer.children[3].value
    assert "exact" in explorer.children[3].value
    assert not explorer.state.running


def test_a_parameter_records_again_and_a_wrong_one_does_not():
    backend = Scripted(Recorded(trace=TRACE), None)
    explorer = Explorer(session(backend).collaborators, (LENGTH,), {"length": 4})
    control = explorer.children[0].children[1].children[0].children[0]
    control.value = 0
    assert "at least 1" in explorer.state.errors["length"]
    control.value = 8
    assert backend.requests[-1].parameters == {"length": 8}
