"""When a module ran, for marking it in a chart."""

from itertools import pairwise

import numpy as np

from memviz.core.timeline import Timeline

MOST = 60
"""Stretches that are marked apart; closer ones are joined until there are no more."""


def spans(timeline: Timeline, module: str) -> list[tuple[float, float]]:
    """Stretches of seconds in which ops of the module, or of one inside it, ran: in forward and in backward.

    >>> import numpy as np
    >>> from memviz.core.trace import Phase
    >>> line = Timeline(predicted=True, device="cpu", seconds=np.array([1.0, 2.0, 3.0]), nbytes={}, phases=(Phase.FORWARD,) * 3,
    ...     modules=("a", "b.c", "b"))
    >>> spans(line, "b")
    [(1.0, 3.0)]
    """
    inside = np.array([path == module or path.startswith(f"{module}.") for path in timeline.modules], bool)
    edges = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0))
    begins = np.concatenate([[0.0], timeline.seconds])
    found = [(float(begins[start]), float(timeline.seconds[end - 1])) for start, end in edges.reshape(-1, 2)]
    while len(found) > MOST:
        gap = np.quantile([later[0] - earlier[1] for earlier, later in pairwise(found)], 0.5)
        found = _joined(found, float(gap))
    return found


def _joined(found: list[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    joined = found[:1]
    for start, end in found[1:]:
        if start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
