"""Which dropped values can be made again, and by which ops (E2)."""

from collections.abc import Callable

from memviz.core.trace import Category, Trace, once_per_trace

_HELD = frozenset({Category.PARAMETER, Category.BUFFER, Category.INPUT})


@once_per_trace
def held_anyway(trace: Trace) -> frozenset[int]:
    """Ids of the values that are there during backward whatever the plan: parameters, buffers and inputs, unless overwritten."""
    overwritten = {value for op in trace.ops[: _last_backward(trace)] for value in op.mutates}
    # A buffer that batch norm overwrites is never read by a recompute (E5), so its older versions do no harm.
    return frozenset(v.id for v in trace.values if v.category in _HELD and (v.id not in overwritten or v.category is Category.BUFFER))


def _last_backward(trace: Trace) -> int:
    return next((op.index for op in trace.ops if op.phase == "optimizer"), len(trace.ops))


def chain(trace: Trace, value: int, held: Callable[[int], bool], limit: int | None = None) -> tuple[int, ...] | None:
    """Indices of the ops that make a value from held ones, in order; None if it can't be done (in ``limit`` ops)."""
    ops: set[int] = set()
    seen: set[int] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if current in seen or held(current):
            continue
        seen.add(current)
        producer = trace.values[current].producer
        if producer is None or not trace.ops[producer].replayable:
            return None
        ops.add(producer)
        if limit is not None and len(ops) > limit:
            return None
        stack.extend(trace.ops[producer].inputs)
    return tuple(sorted(ops))
