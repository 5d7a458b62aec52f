"""From a trace to a plan: a registry of ways to choose what is recomputed."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeAlias

from memviz.core.keys import Key
from memviz.core.matching import parsed
from memviz.core.plan import Plan, Rule, Swap
from memviz.core.strategies import heuristics, manual, none
from memviz.core.trace import Trace, check_trace, once_per_trace
from memviz.core.units import Bytes, parse_bytes

Strategy: TypeAlias = Callable[[Trace], tuple[Rule, ...]]
Rules: TypeAlias = Mapping[str, str] | Sequence[Rule]

STRATEGIES: dict[str, Strategy] = {"none": none.rules, "manual": manual.rules, "heuristics": heuristics.rules}


def plan(
    trace: Trace,
    *,
    recompute: str = "heuristics",
    rules: Rules = (),
    swap: Swap | None = None,
    budget: Bytes | None = None,
    label: str = "",
) -> Plan:
    """A plan for the recorded step.

    Args:
        trace: What ``record`` returned.
        recompute: ``none`` (ignores ``rules`` too), ``manual`` (only ``rules``) or ``heuristics`` (E3, then ``rules``, which win).
        rules: A mapping from pattern to action, or rules; the last match wins.
        swap: When kept values leave the device; None if they never do.
        budget: Not there yet.
        label: The plan's name; the mode if left out.

    Raises:
        ValueError: An unknown mode, a rule that matches no value of the step, with what comes close.
    """
    check_trace(trace, "plan")
    if not isinstance(recompute, str) or recompute not in STRATEGIES:
        close = get_close_matches(str(recompute), STRATEGIES, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        msg = f"there is no recompute mode {recompute!r}; use one of {', '.join(STRATEGIES)}{hint}"
        raise ValueError(msg)
    if budget is not None:
        parse_bytes(budget, name="budget")
        msg = f"budget={budget!r} can't be planned for yet; leave it out and use recompute='heuristics', or swap=Swap(limit={budget!r})"
        raise ValueError(msg)
    own = Plan(rules=rules).rules  # type: ignore[arg-type]
    check_patterns(trace, own)
    chosen = STRATEGIES[recompute](trace)
    return Plan(rules=chosen if recompute == "none" else (*chosen, *own), swap=swap, label=label or recompute)


def check_patterns(trace: Trace, rules: Sequence[Rule]) -> None:
    """ValueError for the first rule that matches no value of the trace, with what comes close."""
    for rule in rules:
        pattern = parsed(rule.pattern)
        if not any(pattern.matches_place(*place) and any(map(pattern.calls.matches, calls)) for place, calls in _made(trace).items()):
            msg = f"the rule {rule.pattern!r} matches nothing in {trace.title or 'this step'}{_hint(trace, rule)}; '*' matches everything"
            raise ValueError(msg)


def _hint(trace: Trace, rule: Rule) -> str:
    places = _made(trace)
    modules = [path for path in dict.fromkeys([*(m.path for m in trace.modules), *(module for module, _, _ in places)]) if path]
    sites = dict.fromkeys(f"{module}:{op.removeprefix('aten::')}" for module, op, _ in places)
    close = get_close_matches(rule.pattern, [*modules, *sites], 3, 0.4) or modules[:3]
    return f"; close are {', '.join(map(repr, close))}" if close else ""


@once_per_trace
def _made(trace: Trace) -> dict[tuple[str, str, str], list[str]]:
    """The calls ``call.nth`` of each module, op and output that made a value."""
    found: dict[str, list[str]] = defaultdict(list)
    for value in trace.values:
        place, at, calls = value.key.rpartition("@")
        if at:
            found[place].append(calls)
    keys = [(Key.parse(f"{place}@0.0"), calls) for place, calls in found.items()]
    return {(key.module, key.op, str(key.output)): calls for key, calls in keys}
