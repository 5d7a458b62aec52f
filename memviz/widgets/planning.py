"""From the controls' values to a plan, its prediction, and what is wrong with a control."""

from dataclasses import replace

from memviz.core.plan import Plan, Swap
from memviz.core.simulate import simulate
from memviz.core.strategies import plan
from memviz.core.timeline import Timeline
from memviz.core.units import format_bytes, parse_bytes
from memviz.widgets.state import ExplorerState


class Wrong(ValueError):
    """What the controls hold can't be; the message belongs beside the control."""

    def __init__(self, message: str, *, control: str) -> None:
        super().__init__(message)
        self.control = control


def limit_of(state: ExplorerState) -> int | None:
    """The limit in bytes, or None."""
    if not state.limit.strip():
        return None
    try:
        return parse_bytes(state.limit, name="limit")
    except ValueError as error:
        raise Wrong(str(error), control="limit") from None


def planned(state: ExplorerState, unplanned: Timeline) -> tuple[Plan, Timeline]:
    """The plan that the controls describe and what it is predicted to need; Wrong where they can't be meant.

    Without a limit, what counts as full for swapping is the step's own unplanned peak: a slider that did nothing until the
    machine's memory is full would show nothing.
    """
    trace = state.trace
    assert trace is not None
    limit = limit_of(state)
    swap = _swap(state, limit or unplanned.peak)
    try:
        made = plan(trace, recompute=state.mode, rules=state.rules, swap=swap)
    except ValueError as error:
        raise Wrong(str(error), control="graph" if state.rules else "mode") from None
    try:
        predicted = simulate(trace, made, limit=limit)
    except ValueError as error:
        raise Wrong(str(error), control="limit") from None
    return replace(made, label=label(state)), predicted


def _swap(state: ExplorerState, full: int) -> Swap | None:
    if not state.swapping:
        return None
    try:
        return Swap(min_bytes=state.min_bytes, occupancy=state.occupancy, limit=full)
    except ValueError as error:
        raise Wrong(str(error), control="swap") from None


def label(state: ExplorerState) -> str:
    """What the plan does, in a few words."""
    rules = f"{len(state.rules)} rule{'s' if len(state.rules) > 1 else ''}" if state.rules and state.mode != "none" else ""
    swap = f"swap above {state.occupancy:.0%}" if state.swapping else ""
    heuristics = "heuristics" if state.mode == "heuristics" else ""
    return " + ".join(filter(None, (heuristics, rules, swap))) or "no plan"


def full_in_words(state: ExplorerState, unplanned: Timeline | None) -> str:
    """Where swapping begins, for people."""
    try:
        full = limit_of(state) or (unplanned.peak if unplanned is not None else 0)
    except Wrong:
        return ""
    if not 0 <= state.occupancy <= 1:
        return ""
    what = "the limit" if state.limit.strip() else "the unplanned peak"
    return f"above {format_bytes(int(full * state.occupancy))}, {state.occupancy:.0%} of {what}" if full else ""
