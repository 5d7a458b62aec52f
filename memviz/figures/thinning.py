"""Fewer points for a chart, without losing what people look for in it."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from memviz.core.timeline import Timeline


def shown_indices(timeline: Timeline, most: int) -> npt.NDArray[np.intp]:
    """Ops to draw, in order: all where there are at most ``most``, else about that many.

    Of each stretch of ops the one with the most and the one with the fewest live bytes are drawn, so that no spike and no
    dip is lost; the peak, the end of forward and both ends always are.
    """
    count = len(timeline.seconds)
    if count <= most:
        return np.arange(count)
    edges = np.linspace(0, count, max(most // 2, 1) + 1).astype(np.intp)
    stretches = [(start, timeline.total[start:end]) for start, end in pairwise(edges)]
    extremes = [start + pick for start, total in stretches for pick in (total.argmin(), total.argmax())]
    always = [0, timeline.peak_index, max(timeline.end_of_forward, 0), count - 1]
    return np.unique(np.array([*extremes, *always], np.intp))
