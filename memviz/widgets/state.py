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
    outcomes: traitlets.Tuple = traitlets.Tuple()
    """Runs and failures, oldest first."""
    chosen = traitlets.Int(None, allow_none=True)
    """Index of the outcome that is looked at; None for the newest run."""
    mode = traitlets.Enum(MODES, default_value="none")
    rules: traitlets.Tuple = traitlets.Tuple()
    swapping = traitlets.Bool(default_value=False)
    min_bytes = traitlets.Union([traitlets.Int(), traitlets.Unicode()], default_value="2 KiB")
    occupancy = traitlets.Float(0.7)
    limit = traitlets.Unicode("")
    parameters = traitlets.Dict()
    selected = traitlets.Unicode("")
    """A rule's pattern: what is selected in every view; an empty text for nothing."""
    auto = traitlets.Bool(default_value=True)
    """Whether a change of plan steps for real without being told to."""
    stage = traitlets.Unicode("")
    fraction = traitlets.Float(0.0)
    running = traitlets.Bool(default_value=False)
    samples: traitlets.Tuple = traitlets.Tuple()
    dark = traitlets.Bool(default_value=False)
    errors = traitlets.Dict()
    """What is wrong, by the control that it is shown beside."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """All measured runs."""
        return tuple(one for one in self.outcomes if isinstance(one, Run))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """All runs that have no result."""
        return tuple(one for one in self.outcomes if isinstance(one, Failure))

    @property
    def runs_of_step(self) -> tuple[Run, ...]:
        """The runs of the step whose trace is shown: others, as of other settings, can't be laid over it."""
        return tuple(run for run in self.runs if self.describes(run))

    @property
    def measured(self) -> Run | None:
        """The run that is looked at: the chosen one, or the newest of the step that is shown."""
        chosen = self.outcomes[self.chosen] if self.chosen is not None else None
        if isinstance(chosen, Run) and self.describes(chosen):
            return chosen
        return self.runs_of_step[-1] if self.runs_of_step else None

    def describes(self, run: Run) -> bool:
        """Whether the run is of the step that is shown."""
        return self.trace is not None and (run.title, run.device) == (self.trace.title, self.trace.device)

    def add_run(self, run: Run) -> None:
        """Show one more run, and look at it."""
        with self.hold_trait_notifications():
            self.outcomes = (*self.outcomes, run)
            self.chosen = None

    def add_failure(self, failure: Failure) -> None:
        """Show why a run has no result, beside Run."""
        self.outcomes = (*self.outcomes, failure)
        self.complain("run", failure.message)

    def set_rule(self, rule: Rule) -> None:
        """Make the rule the last, which wins; an older one of the same pattern goes."""
        self.rules = (*(old for old in self.rules if old.pattern != rule.pattern), rule)

    def drop_rule(self, rule: Rule) -> None:
        """Take the rule away."""
        self.rules = tuple(old for old in self.rules if old != rule)

    def complain(self, control: str, message: str) -> None:
        """Show a message beside the control; an empty one takes it away."""
        rest = {name: text for name, text in self.errors.items() if name != control}
        self.errors = {**rest, control: message} if message else rest
