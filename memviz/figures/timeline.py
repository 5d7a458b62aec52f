"""The memory timeline: what is live at every moment of a step, measured and predicted."""

from collections.abc import Sequence
from typing import TypeAlias

import plotly.graph_objects as go

from memviz.core.run import Run
from memviz.core.timeline import Timeline
from memviz.figures.curves import Curve, Scale, areas, outline, peak_marker, peak_text, plain, prediction, scale_for, swap_markers
from memviz.figures.runs import label_of
from memviz.figures.spans import spans
from memviz.figures.theme import LIMIT_COLOR, template, theme

Drawable: TypeAlias = Run | Timeline


def timeline_figure(
    measured: Drawable | None = None,
    predicted: Timeline | None = None,
    earlier: Sequence[Drawable] = (),
    limit: int | None = None,
    *,
    selected: str = "",
    dark: bool = False,
) -> go.Figure:
    """The figure of one step's memory.

    Args:
        measured: Drawn as one area for each category, stacked, with its peak and its swaps marked.
        predicted: Drawn as a dashed line that says so.
        earlier: Measured before: drawn as outlines.
        limit: Bytes; drawn as a line. None takes that of ``measured``, if it is a run.
        selected: A module's path; when it ran is marked behind the curves.
        dark: For a dark page.

    Returns:
        x is seconds since the step began, y MiB (GiB from 1 GiB on), and each point tells its bytes on hover. A run is
        stretched to the seconds of its unmetered steps, since metering slows a step down; a bare timeline is drawn as it is.

    Raises:
        ValueError: A predicted timeline is passed as measured or a measured one as predicted: they are never drawn alike.
    """
    for name, one, wanted in (("measured", measured, False), ("predicted", predicted, True), *(("earlier", old, False) for old in earlier)):
        if one is not None and timeline_of(one).predicted is not wanted:
            msg = f"{name}= got a {'measured' if wanted else 'predicted'} timeline; give it as {'measured' if wanted else 'predicted'}="
            raise ValueError(msg)
    limit = measured.limit if limit is None and isinstance(measured, Run) else limit
    drawn = [one for one in (measured, predicted, *earlier) if one is not None]
    scale = scale_for(max([*(timeline_of(one).peak for one in drawn), limit or 0]))
    figure = go.Figure(layout=_layout([timeline_of(one) for one in drawn], scale, limit, dark=dark))
    now = [curve_of(measured, scale)] if measured is not None else []
    planned = [curve_of(predicted, scale)] if predicted is not None else []
    before = [curve_of(one, scale) for one in earlier]
    _add_curves(figure, now, planned, before, dark=dark)
    if limit is not None:
        _add_limit(figure, limit, scale)
    for curve in (now or planned) if selected else ():
        _add_spans(figure, curve, selected, dark=dark)
    return figure


def timeline_of(drawable: Drawable) -> Timeline:
    """The timeline itself, or the run's."""
    return drawable.timeline if isinstance(drawable, Run) else drawable


def curve_of(drawable: Drawable, scale: Scale) -> Curve:
    """The drawable on an axis; a run is stretched to the seconds of its unmetered steps."""
    timeline = timeline_of(drawable)
    if isinstance(drawable, Timeline):
        return Curve(timeline=timeline, scale=scale)
    metered = float(timeline.seconds[-1]) if len(timeline.seconds) else 0.0
    return Curve(timeline=timeline, scale=scale, label=label_of(drawable), stretch=drawable.seconds / metered if metered else 1.0)


def _add_curves(figure: go.Figure, now: Sequence[Curve], planned: Sequence[Curve], before: Sequence[Curve], *, dark: bool) -> None:
    look = theme(dark=dark)
    # Later ones lie over earlier ones: the measured peak is on top of everything.
    for curve in now:
        figure.add_traces([*areas(curve, look), *swap_markers(curve, look)])
    figure.add_traces([outline(curve, position, look) for position, curve in enumerate(before)])
    for curve in planned:
        figure.add_traces(prediction(curve, look))
    figure.add_traces([marker for curve in now for marker in peak_marker(curve, look)])
    for curve in (*planned, *now):
        if len(curve.timeline.seconds):
            figure.add_annotation(peak_text(curve, look))


def _layout(drawn: Sequence[Timeline], scale: Scale, limit: int | None, *, dark: bool) -> go.Layout:
    devices = " and ".join(sorted({timeline.device for timeline in drawn}))
    on = f", on {plain(devices)}" if devices else ""
    # Room above the peaks for their texts.
    top = max([*(timeline.peak * 1.25 for timeline in drawn), (limit or 0) * 1.1]) / scale.unit
    return go.Layout(
        template=template(dark=dark),
        height=420,
        margin={"l": 10, "r": 20, "t": 70, "b": 10},
        hovermode="x unified",
        xaxis={"title": {"text": f"seconds since the step began{on}"}, "rangemode": "tozero", "hoverformat": ".4f"},
        yaxis={"title": {"text": f"live memory ({scale.name})"}, "range": [0, top or 1]},
    )


def _add_limit(figure: go.Figure, limit: int, scale: Scale) -> None:
    height = limit / scale.unit
    figure.add_hline(
        y=height,
        line={"color": LIMIT_COLOR, "width": 2},
        annotation={"text": f"limit {height:.1f} {scale.name}", "font": {"color": LIMIT_COLOR}, "xanchor": "right", "x": 0.995},
    )


def _add_spans(figure: go.Figure, curve: Curve, module: str, *, dark: bool) -> None:
    marked = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "line": {"width": 0}}
    look = {**marked, "fillcolor": theme(dark=dark).muted, "opacity": 0.3}
    shapes = [{**look, "x0": start * curve.stretch, "x1": end * curve.stretch} for start, end in spans(curve.timeline, module)]
    for shape in shapes:
        figure.add_shape(shape)
