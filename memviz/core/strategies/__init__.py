"""From a trace to a plan: a registry of ways to choose what is recomputed."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeAlias

from memviz.core.keys import Key
from memviz.core.plan import Plan, Rule, Swap
from memviz.core.strategies import heuristics, manual, none
from memviz.core.trace import Trace, check_trace
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
    texts = dict.fromkeys(value.key for value in trace.values if "@" in value.key)
    keys = [Key.parse(text) for text in texts]
    for rule in rules:
        if any(rule.matches(key) for key in keys):
            continue
        modules = [path for path in dict.fromkeys([*(m.path for m in trace.modules), *(key.module for key in keys)]) if path]
        sites = dict.fromkeys(f"{key.module}:{key.op.removeprefix('aten::')}" for key in keys)
        close = get_close_matches(rule.pattern, [*modules, *sites], 3, 0.4) or modules[:3]
        hint = f"; close are {', '.join(map(repr, close))}" if close else ""
        msg = f"the rule {rule.pattern!r} matches nothing in {trace.title or 'this step'}{hint}; '*' matches everything"
        raise ValueError(msg)
