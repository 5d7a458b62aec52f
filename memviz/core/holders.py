"""Who holds the peak, for people."""

from memviz.core.timeline import Holder
from memviz.core.trace import Category, Trace, Value, once_per_trace


def summed_holders(trace: Trace, values: list[Value]) -> tuple[Holder, ...]:
    """Holders, largest first; the turns of a loop share one line."""
    lines = _lines(trace)
    groups: dict[tuple[str, Category], list[Value]] = {}
    for value in values:
        line = lines[value.id]
        if line in groups:
            groups[line].append(value)
        else:
            groups[line] = [value]
    return tuple(sorted((_holder(trace, group) for group in groups.values()), key=lambda holder: -holder.nbytes))


@once_per_trace
def _lines(trace: Trace) -> list[tuple[str, Category]]:
    return [(_site(value.key), value.category) for value in trace.values]


def _site(key: str) -> str:
    return key.partition("@")[0] + key.rpartition(".")[2] if "@" in key else key


def _holder(trace: Trace, group: list[Value]) -> Holder:
    first = group[0]
    op = trace.ops[first.producer] if first.producer is not None else None
    module, _, rest = first.key.partition(":")
    return Holder(
        key=first.key,
        module=op.module if op else module,
        op=op.name if op else rest.partition("#")[0],
        source=op.source if op else None,
        nbytes=sum(value.nbytes for value in group),
        category=first.category,
        count=len(group),
    )
