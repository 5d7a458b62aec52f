"""A step while it is being measured."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from memviz.core.events import Sample
from memviz.core.timeline import Timeline
from memviz.figures.curves import Scale
from memviz.figures.theme import theme

NAME = "being measured"


def live_line(samples: Sequence[Sample], expected: Timeline | None, scale: Scale, *, dark: bool) -> go.Scatter:
    """The samples so far, at the moments at which the same ops are expected.

    A metered step is slower than a plain one, so its own seconds would run out of the chart. Without something expected its
    own seconds are all there is.
    """
    ops = np.array([sample.op for sample in samples], np.intp)
    seconds = np.array([sample.seconds for sample in samples])
    if expected is not None and len(expected.seconds) and len(ops):
        seconds = expected.seconds[np.clip(ops, 0, len(expected.seconds) - 1)]
    total = np.array([sum(sample.nbytes.values()) for sample in samples], np.int64)
    return go.Scatter(
        x=seconds,
        y=total / scale.unit,
        customdata=total,
        name=NAME,
        mode="lines",
        line={"shape": "hv", "width": 3, "color": theme(dark=dark).recompute},
        hovertemplate=f"{NAME}: %{{customdata:,d}} bytes<extra></extra>",
        showlegend=bool(samples),
    )
