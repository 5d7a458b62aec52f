"""Colours that people with any colour vision can tell apart, and the look of the charts in light and dark."""

from dataclasses import dataclass

import plotly.graph_objects as go

from memviz.core.plan import Action
from memviz.core.trace import Category

# Okabe and Ito's palette (2008). Neighbours in the stack also differ in lightness, so that a grey print still shows them.
CATEGORY_COLORS: dict[Category, str] = {
    Category.PARAMETER: "#0072B2",
    Category.BUFFER: "#999999",
    Category.OPTIMIZER_STATE: "#56B4E9",
    Category.INPUT: "#F0E442",
    Category.GRADIENT: "#009E73",
    Category.ACTIVATION: "#E69F00",
    Category.TEMPORARY: "#CC79A7",
}

ACTION_COLORS: dict[Action, str] = {
    Action.KEEP: "#999999",
    Action.RECOMPUTE: "#0072B2",
    Action.SWAP: "#E69F00",
    Action.REVERSE: "#009E73",
}

# The palette's vermilion, which no category has.
LIMIT_COLOR = "#D55E00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of everything that is not a category or an action, as CSS colours."""

    ink: str
    muted: str
    paper: str
    grid: str


LIGHT = Theme(ink="#1f2328", muted="#6b727b", paper="#ffffff", grid="#e3e6ea")
DARK = Theme(ink="#e6e8eb", muted="#9aa2ac", paper="#16181c", grid="#32363d")


def theme(*, dark: bool) -> Theme:
    """The dark theme or the light one."""
    return DARK if dark else LIGHT


def template(*, dark: bool) -> go.layout.Template:
    """The plotly template of all charts.

    The button that sends a chart's data to a server is off: nothing that is drawn leaves the machine.
    """
    look = theme(dark=dark)
    axis = {"gridcolor": look.grid, "linecolor": look.grid, "zerolinecolor": look.grid, "automargin": True}
    return go.layout.Template(
        layout={
            "font": {"color": look.ink, "family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 13},
            "paper_bgcolor": look.paper,
            "plot_bgcolor": look.paper,
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"bgcolor": look.paper, "bordercolor": look.muted, "font": {"color": look.ink}},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
            "modebar": {
                "remove": ["sendDataToCloud", "lasso2d", "select2d"],
                "bgcolor": "rgba(0,0,0,0)",
                "color": look.muted,
                "activecolor": look.ink,
            },
        }
    )
