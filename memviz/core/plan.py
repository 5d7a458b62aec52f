"""What to do with each saved tensor: actions, rules and swap thresholds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Literal

from memviz.core.keys import Key
from memviz.core.matching import LastMatch, parsed
from memviz.core.units import Bytes, parse_bytes


class Action(StrEnum):
    """Where a saved tensor is while it waits for backward."""

    KEEP = "keep"
    RECOMPUTE = "recompute"
    SWAP = "swap"
    REVERSE = "reverse"


class Order(StrEnum):
    """Which of the waiting values leaves first."""

    OLDEST = "oldest"
    NEWEST = "newest"
    LARGEST = "largest"


Target = Literal["auto", "host", "disk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A pattern on keys and the action for what it matches.

    A pattern is ``module`` or ``module:op`` with optional ``#output`` and ``@call.nth``; each part is a glob. The module
    part matches a module and everything inside it, as a folder does in .gitignore; ``aten::`` may be left out.

    >>> Rule(pattern="blocks.*.bn*", action=Action.RECOMPUTE).matches(Key.parse("blocks.3.bn1:aten::relu#0@0.0"))
    True
    >>> Rule(pattern="blocks:relu", action=Action.RECOMPUTE).matches(Key.parse("blocks.3:aten::mul#0@0.0"))
    False
    """

    pattern: str
    action: Action

    def __post_init__(self) -> None:
        object.__setattr__(self, "action", parse_action(self.action))
        if not isinstance(self.pattern, str) or not self.pattern.strip():
            msg = f"a rule's pattern is text such as 'blocks.*:relu' or '*', not {self.pattern!r}"
            raise ValueError(msg)

    def matches(self, key: Key) -> bool:
        """Whether the rule's action applies to the value of this key, if no later rule matches it."""
        return parsed(self.pattern).matches(key)


def parse_action(action: str) -> Action:
    """The action of that name; ValueError names the ones there are."""
    try:
        return Action(action)
    except ValueError:
        msg = f"there is no action {action!r}; use one of {', '.join(Action)}"
        raise ValueError(msg) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """When kept values leave the device, and where to (E6).

    Attributes:
        min_bytes: Smaller values stay.
        occupancy: Values leave while the device holds more than this part of the limit; 0 to 1.
        limit: Bytes (or text such as "6 GiB") that count as full; None for what the device has, or the run's own limit.
        order: Which value leaves first; oldest is right for backward, which needs the oldest last.
        prefetch: How many values are fetched ahead of their use in backward.
        target: ``host`` memory, ``disk``, or ``auto``: host for an accelerator, disk for the CPU.
    """

    min_bytes: Bytes = 2048
    occupancy: float = 0.7
    limit: Bytes | None = None
    order: Order = Order.OLDEST
    prefetch: int = 2
    target: Target = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "min_bytes", parse_bytes(self.min_bytes, name="min_bytes"))
        if self.limit is not None:
            object.__setattr__(self, "limit", parse_bytes(self.limit, name="limit"))
            if not self.limit:
                msg = "limit is 0, but what counts as full is at least one byte; to swap whatever can be, use occupancy=0.0"
                raise ValueError(msg)
        if isinstance(self.occupancy, bool) or not isinstance(self.occupancy, int | float) or not 0 <= self.occupancy <= 1:
            msg = f"occupancy is a part of the limit from 0 to 1, such as 0.7, not {self.occupancy!r}"
            raise ValueError(msg)
        if isinstance(self.prefetch, bool) or not isinstance(self.prefetch, int) or self.prefetch < 0:
            msg = f"prefetch is how many values to fetch ahead, 0 or more, not {self.prefetch!r}"
            raise ValueError(msg)
        if self.order not in tuple(Order):
            msg = f"there is no order {self.order!r}; use one of {', '.join(Order)}"
            raise ValueError(msg)
        object.__setattr__(self, "order", Order(self.order))
        if self.target not in ("auto", "host", "disk"):
            msg = f"there is no swap target {self.target!r}; use one of auto, host, disk"
            raise ValueError(msg)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Rules, of which the last match wins, and thresholds; what no rule matches is kept.

    Kept values are what ``swap`` may move when the device is nearly full; a value with the action SWAP moves at once.

    Attributes:
        rules: A tuple of rules, or a mapping from pattern to action.
        swap: When kept values leave the device; None if they never do.
        label: The plan's name, for people.

    >>> plan = Plan(rules={"*": "keep", "blocks.*.bn*": "recompute"}, swap=Swap(occupancy=0.5))
    >>> plan.action(Key.parse("blocks.3.bn1:aten::relu#0@0.0")).value
    'recompute'
    """

    rules: tuple[Rule, ...] = ()
    swap: Swap | None = None
    label: str = ""

    def __post_init__(self) -> None:
        rules = self.rules
        if isinstance(rules, Mapping):
            rules = tuple(Rule(pattern=pattern, action=action) for pattern, action in rules.items())
        if not isinstance(rules, Iterable) or not all(isinstance(rule, Rule) for rule in rules):
            msg = f"rules is a mapping from pattern to action or a sequence of Rule, not {self.rules!r}"
            raise ValueError(msg)
        object.__setattr__(self, "rules", tuple(rules))
        if self.swap is not None and not isinstance(self.swap, Swap):
            msg = f"swap is a Swap, as in Swap(occupancy=0.7), or None, not {self.swap!r}"
            raise ValueError(msg)

    def rule(self, key: Key) -> Rule | None:
        """The rule that decides over the value of this key; None if none does."""
        position = self.matching.at(key.module, key.op, key.output).last(f"{key.call}.{key.nth}")
        return None if position is None else self.rules[position]

    def action(self, key: Key) -> Action:
        """What happens to the value of this key."""
        rule = self.rule(key)
        return Action.KEEP if rule is None else rule.action

    @cached_property
    def matching(self) -> LastMatch:
        """The rules' patterns; positions are those in ``rules``."""
        return LastMatch(rule.pattern for rule in self.rules)

    def unmatched(self, places: Iterable[tuple[str, str]]) -> tuple[Rule, ...]:
        """The rules that match no op of any of these modules, in pairs of module and op: a slip of the pen, or another model's plan."""
        places = tuple(places)
        patterns = ((rule, parsed(rule.pattern)) for rule in self.rules)
        return tuple(
            rule for rule, pattern in patterns if not any(pattern.matches_place(*at, pattern.output.literal or "0") for at in places)
        )

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("rules", "swap", "label")}

    @cached_property
    def keeps_everything(self) -> bool:
        """Whether the plan changes nothing, whatever it is applied to."""
        return self.swap is None and all(rule.action is Action.KEEP for rule in self.rules)
