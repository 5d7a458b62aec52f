"""The parts of a memory timeline, each as plotly traces."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from memviz.core.plan import Action
from memviz.core.timeline import Timeline, Transfer
from memviz.core.trace import Category
from memviz.core.units import format_bytes, format_seconds
from memviz.figures.theme import CATEGORY_COLORS, Theme
from memviz.figures.thinning import shown_indices

MOST_POINTS = 800
"""As many as a chart has columns; it is drawn again while a slider moves, and the peaks of what is left out stay."""

LEAST_NAMED = 0.005
"""Part of the peak below which a category is too thin to be seen, and is named on hover only."""

LONGEST_LABEL = 12

_HOVER = "%{fullData.name}: %{y:.2f} {unit} (%{customdata:,d} bytes)<extra></extra>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The unit of an axis: its bytes and its name."""

    unit: int
    name: str


def scale_for(peak: int) -> Scale:
    """GiB from 1 GiB on, else MiB."""
    return Scale(unit=2**30, name="GiB") if peak >= 2**30 else Scale(unit=2**20, name="MiB")


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A timeline as it is drawn: in which unit, under which name, and how much its seconds are stretched."""

    timeline: Timeline
    scale: Scale
    label: str = ""
    stretch: float = 1.0

    @cached_property
    def shown(self) -> npt.NDArray[np.intp]:
        """Indices of the ops that are drawn."""
        return shown_indices(self.timeline, MOST_POINTS)

    def seconds(self, at: int | npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """When the ops at these indices ended."""
        return np.asarray(self.timeline.seconds[at] * self.stretch, np.float64)

    def line(self, nbytes: npt.NDArray[np.int64], name: str, *, line: dict[str, object], **style: object) -> go.Scatter:
        """A stepped line: what an op leaves live stays so until the next has ended."""
        drawn = nbytes[self.shown]
        return go.Scatter(
            x=self.seconds(self.shown),
            y=drawn / self.scale.unit,
            customdata=drawn,
            name=name,
            mode="lines",
            line={"shape": "hv", **line},
            hovertemplate=_HOVER.replace("{unit}", self.scale.name),
            **style,
        )


def areas(curve: Curve, look: Theme) -> list[go.Scatter]:
    """One stacked area for each category that ever holds anything, from the floor up, under a line of their total."""
    nbytes = curve.timeline.nbytes
    stacked = [_area(curve, kind, nbytes[kind]) for kind in Category if kind in nbytes and nbytes[kind].any()]
    return [*stacked, curve.line(curve.timeline.total, "measured", line={"color": look.ink, "width": 1.5})]


def _area(curve: Curve, kind: Category, nbytes: npt.NDArray[np.int64]) -> go.Scatter:
    named = bool(nbytes.max() >= LEAST_NAMED * curve.timeline.peak)
    color = CATEGORY_COLORS[kind]
    return curve.line(nbytes, kind.value.replace("_", " "), line={"width": 0}, fillcolor=color, stackgroup="measured", showlegend=named)


def outline(curve: Curve, position: int, look: Theme) -> go.Scatter:
    """An earlier run: no more than its total."""
    dash = ("solid", "dot", "longdashdot")[position % 3]
    name = f"earlier: {plain(_cut(curve.label)) or position + 1}"
    return curve.line(curve.timeline.total, name, line={"color": look.muted, "width": 1.5, "dash": dash})


def _cut(label: str) -> str:
    """A label that leaves room for a second column of the legend in a narrow chart."""
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}\u2026"


def prediction(curve: Curve, look: Theme) -> list[go.Scatter]:
    """The predicted total, its swaps and its peak; each says that it is predicted."""
    total = curve.line(curve.timeline.total, "predicted", line={"color": look.ink, "width": 2, "dash": "dash"})
    return [total, *swap_markers(curve, look), *peak_marker(curve, look)]


def peak_marker(curve: Curve, look: Theme) -> list[go.Scatter]:
    """Where the peak is; hollow where it is predicted. Nothing for a timeline without ops."""
    timeline, at = curve.timeline, curve.timeline.peak_index
    if not len(timeline.seconds):
        return []
    name, symbol = ("predicted peak", "diamond-open") if timeline.predicted else ("peak", "diamond")
    module = plain(timeline.modules[at]) or "the model"
    return [
        go.Scatter(
            x=[float(curve.seconds(at))],
            y=[timeline.peak / curve.scale.unit],
            customdata=[timeline.peak],
            hovertext=[f"{name} in {module}"],
            mode="markers",
            marker={"symbol": symbol, "size": 10, "color": look.ink, "line": {"width": 1.5, "color": look.ink}},
            name=name,
            showlegend=False,
            hovertemplate="%{hovertext}: %{customdata:,d} bytes<extra></extra>",
        )
    ]


def peak_text(curve: Curve, look: Theme) -> go.layout.Annotation:
    """What the peak is, in the chart's upper left corner under its marker's symbol: at the marker, two peaks would cover each other."""
    timeline = curve.timeline
    symbol, name, line = ("\u25c7", "predicted peak", 1) if timeline.predicted else ("\u25c6", "peak", 0)
    return go.layout.Annotation(
        text=f"{symbol} {name} {format_bytes(timeline.peak)}",
        xref="paper",
        yref="paper",
        x=0.01,
        y=1,
        yshift=-20 * line,
        xanchor="left",
        yanchor="top",
        showarrow=False,
        bgcolor=look.paper,
        opacity=0.9,
        borderpad=1,
    )


def swap_markers(curve: Curve, look: Theme, *, even_if_none: bool = False) -> list[go.Scatter]:
    """Where values left the device and came back, on the edge of the stack; predicted ones hollow. Without ``even_if_none``, none if none moved."""
    said, hollow = ("predicted: ", "-open") if curve.timeline.predicted else ("", "")
    out = tuple(one for one in curve.timeline.transfers if one.out)
    back = tuple(one for one in curve.timeline.transfers if not one.out)
    both = ((f"{said}swapped out", f"triangle-down{hollow}", out), (f"{said}swapped in", f"triangle-up{hollow}", back))
    return [_swaps(curve, look, name, symbol, moved) for name, symbol, moved in both if moved or even_if_none]


def _swaps(curve: Curve, look: Theme, name: str, symbol: str, moved: Sequence[Transfer]) -> go.Scatter:
    timeline = curve.timeline
    starts = np.array([one.start for one in moved])
    live = timeline.total[np.clip(np.searchsorted(timeline.seconds, starts, side="right") - 1, 0, len(timeline.seconds) - 1)]
    return go.Scatter(
        x=starts * curve.stretch,
        y=live / curve.scale.unit,
        customdata=[one.nbytes for one in moved],
        text=[f"{plain(one.key)} in {format_seconds(one.end - one.start)}" for one in moved],
        mode="markers",
        marker={"symbol": symbol, "size": 7, "color": look.action(Action.SWAP), "line": {"width": 1, "color": look.ink}},
        name=name,
        showlegend=not curve.timeline.predicted,
        hovertemplate=f"{name}: %{{customdata:,d}} bytes<br>%{{text}}<extra></extra>",
    )


def plain(text: str) -> str:
    """Text that plotly shows as it is: it would read ``<`` as the start of a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
