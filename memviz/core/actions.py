"""What really happens to each saved value under a plan."""

from functools import lru_cache

from memviz.core.derive import held_anyway
from memviz.core.keys import Key
from memviz.core.plan import Action, Plan
from memviz.core.schedule import makers, places
from memviz.core.trace import PERSISTENT, Trace, Value, once_per_trace


def actions_of(trace: Trace, plan: Plan) -> dict[int, Action]:
    """The action of each saved value; what can't be recomputed or rebuilt is kept, as the engine does (E5)."""
    found = _wanted(trace, plan)
    chosen = set(found.values())
    if Action.RECOMPUTE in chosen:
        _keep_what_nothing_makes(trace, found)
    if Action.REVERSE in chosen:
        _keep_what_no_block_rebuilds(trace, found)
    return found


def _wanted(trace: Trace, plan: Plan) -> dict[int, Action]:
    plannable = _plannable(trace)
    actions = [rule.action for rule in plan.rules]
    found: dict[int, Action] = {}
    for place, calls in places(trace).items():
        key = Key.parse(f"{place}@0.0")
        last = plan.matching.at(key.module, key.op, key.output).last
        for value, call in calls.items():
            if value in plannable:
                position = last(call)
                found[value] = Action.KEEP if position is None else actions[position]
    return found


@once_per_trace
def _plannable(trace: Trace) -> frozenset[int]:
    return frozenset(value for value in trace.saves_of if plannable(trace.values[value]))


def plannable(value: Value) -> bool:
    """Whether a plan can do anything with the value, where it is saved."""
    return value.category not in PERSISTENT and value.producer is not None and "@" in value.key


def _keep_what_nothing_makes(trace: Trace, found: dict[int, Action]) -> None:
    """Values are numbered as they are made, so what one is made from has been decided before it."""
    makeable = set(held_anyway(trace))
    last = max(value for value, action in found.items() if action is Action.RECOMPUTE)
    saved = trace.saves_of
    for value, maker in enumerate(makers(trace)[: last + 1]):
        recompute = found.get(value) is Action.RECOMPUTE
        if (value in saved and not recompute) or (maker is not None and makeable.issuperset(maker.inputs)):
            makeable.add(value)
        elif recompute:
            found[value] = Action.KEEP
            makeable.add(value)


def _keep_what_no_block_rebuilds(trace: Trace, found: dict[int, Action]) -> None:
    for value, action in found.items():
        if action is Action.REVERSE and block_part(trace, trace.values[value]) is None:
            found[value] = Action.KEEP


def block_part(trace: Trace, value: Value) -> str | None:
    """The f or g of the innermost reversible block that the value was made in; the block itself for what is between; or None."""
    return _block_part(reversible_blocks(trace), value.key.partition(":")[0])


@once_per_trace
def reversible_blocks(trace: Trace) -> tuple[str, ...]:
    """Paths of the modules that REVERSE can apply to."""
    return tuple(module.path for module in trace.modules if module.reversible)


@lru_cache(maxsize=4096)
def _block_part(reversible: tuple[str, ...], module: str) -> str | None:
    around = [path for path in reversible if not path or module == path or module.startswith(f"{path}.")]
    if not around:
        return None
    block = max(around, key=len)
    inner = module[len(block) :].lstrip(".").partition(".")[0]
    return ".".join(filter(None, (block, inner)))
