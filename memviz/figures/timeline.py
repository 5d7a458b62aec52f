"""The memory timeline: what is live at every moment of a step, measured and predicted."""

from collections.abc import Sequence
from typing import TypeAlias

import plotly.graph_objects as go

from memviz.core.run import Run
from memviz.core.timeline import Timeline
from memviz.figures.curves import Curve, Scale, areas, outline, peak_marker, prediction, scale_for, swap_markers
from memviz.figures.theme import LIMIT_COLOR, template, theme

Drawable: TypeAlias = Run | Timeline


def timeline_figure(
    measured: Drawable | None = None,
    predicted: Timeline | None = None,
    earlier: Sequence[Drawable] = (),
    limit: int | None = None,
    *,
    dark: bool = False,
) -> go.Figure:
    """The figure of one step's memory.

    Args:
        measured: Drawn as one area for each category, stacked, with its peak and its swaps marked. A predicted timeline here
            is a ValueError, as predicted figures are never drawn like measured ones.
        predicted: Drawn as a dashed line that says so.
        earlier: Measured before: drawn as outlines.
        limit: Bytes; drawn as a line. None takes that of ``measured``, if it is a run.
        dark: For a dark page.

    Returns:
        x is seconds since the step began, y MiB (GiB from 1 GiB on), and each point tells its bytes on hover. A run is
        stretched to the seconds of its unmetered steps, since metering slows a step down; a bare timeline is drawn as it is.
    """
    if measured is not None and timeline_of(measured).predicted:
        msg = "measured got a predicted timeline; give it as predicted=, so that it is drawn as one"
        raise ValueError(msg)
    limit = measured.limit if limit is None and isinstance(measured, Run) else limit
    drawn = [timeline_of(one) for one in (measured, predicted, *earlier) if one is not None]
    scale = scale_for(max([*(timeline.peak for timeline in drawn), limit or 0]))
    figure = go.Figure(layout=_layout(drawn, scale, dark=dark))
    look = theme(dark=dark)
    if measured is not None:
        curve = _curve(measured, scale)
        figure.add_traces([*areas(curve, look), *swap_markers(curve, look)])
    figure.add_traces([outline(_curve(one, scale), position, look) for position, one in enumerate(earlier)])
    if predicted is not None:
        figure.add_traces(prediction(_curve(predicted, scale), look))
    if measured is not None:
        figure.add_trace(peak_marker(_curve(measured, scale), look))
    if limit is not None:
        _add_limit(figure, limit, scale)
    return figure


def timeline_of(drawable: Drawable) -> Timeline:
    """The timeline itself, or the run's."""
    return drawable.timeline if isinstance(drawable, Run) else drawable


def _curve(drawable: Drawable, scale: Scale) -> Curve:
    timeline = timeline_of(drawable)
    if isinstance(drawable, Timeline) or not len(timeline.seconds) or not timeline.seconds[-1]:
        return Curve(timeline=timeline, scale=scale)
    label = drawable.plan.label or "no plan"
    return Curve(timeline=timeline, scale=scale, label=label, stretch=drawable.seconds / float(timeline.seconds[-1]))


def _layout(drawn: Sequence[Timeline], scale: Scale, *, dark: bool) -> go.Layout:
    devices = " and ".join(sorted({timeline.device for timeline in drawn}))
    top = max((timeline.peak for timeline in drawn), default=0) / scale.unit
    return go.Layout(
        template=template(dark=dark),
        height=420,
        margin={"l": 10, "r": 20, "t": 70, "b": 10},
        hovermode="x unified",
        xaxis={"title": {"text": f"seconds since the step began, on {devices}" if devices else "seconds since the step began"}, "rangemode": "tozero"},
        # Room above the peak for its text.
        yaxis={"title": {"text": f"live memory ({scale.name})"}, "range": [0, top * 1.12 or 1]},
    )


def _add_limit(figure: go.Figure, limit: int, scale: Scale) -> None:
    height = limit / scale.unit
    figure.add_hline(
        y=height,
        line={"color": LIMIT_COLOR, "width": 2},
        annotation={"text": f"limit {height:.1f} {scale.name}", "font": {"color": LIMIT_COLOR}, "xanchor": "left", "x": 0.005},
    )
    bottom, top = figure.layout.yaxis.range
    figure.layout.yaxis.range = [bottom, max(top, height * 1.12)]
