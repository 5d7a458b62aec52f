"""What the explorer shows, as observable values; no view holds a copy and nothing is computed here."""

import traitlets

from memviz.core.failure import Failure
from memviz.core.plan import Plan, Rule
from memviz.core.run import Run
from memviz.core.timeline import Timeline
from memviz.core.trace import Trace

MODES = ("none", "manual", "heuristics")


class ExplorerState(traitlets.HasTraits):
    """The explorer's values. Results are only ever added, so that a failure takes nothing away."""

    trace = traitlets.Instance(Trace, allow_none=True)
    plan = traitlets.Instance(Plan, allow_none=True)
    predicted = traitlets.Instance(Timeline, allow_none=True)
    runs: traitlets.Tuple = traitlets.Tuple()
    failures: traitlets.Tuple = traitlets.Tuple()
    mode = traitlets.Enum(MODES, default_value="none")
    rules: traitlets.Tuple = traitlets.Tuple()
    swapping = traitlets.Bool(default_value=False)
    min_bytes = traitlets.Union([traitlets.Int(), traitlets.Unicode()], default_value=2048)
    occupancy = traitlets.Float(0.7)
    limit = traitlets.Unicode("")
    parameters = traitlets.Dict()
    selected = traitlets.Unicode("")
    stage = traitlets.Unicode("")
    fraction = traitlets.Float(0.0)
    running = traitlets.Bool(default_value=False)
    samples: traitlets.Tuple = traitlets.Tuple()
    errors = traitlets.Dict()

    def add_run(self, run: Run) -> None:
        """Show one more run."""
        self.runs = (*self.runs, run)

    def add_failure(self, failure: Failure) -> None:
        """Show why a run has no result, beside Run."""
        self.failures = (*self.failures, failure)
        self.complain("run", failure.message)

    def set_rule(self, rule: Rule) -> None:
        """Make the rule the last, which wins; an older one of the same pattern goes."""
        self.rules = (*(old for old in self.rules if old.pattern != rule.pattern), rule)

    def complain(self, control: str, message: str) -> None:
        """Show a message beside the control; an empty one takes it away."""
        rest = {name: text for name, text in self.errors.items() if name != control}
        self.errors = {**rest, control: message} if message else rest
