"""Colours that people with any colour vision can tell apart, and the look of the charts in light and dark."""

from dataclasses import dataclass

import plotly.graph_objects as go

from memviz.core.plan import Action
from memviz.core.trace import Category

# Okabe and Ito's palette (2008), with a darker grey: theirs is the pink to people without green cones.
CATEGORY_COLORS: dict[Category, str] = {
    Category.PARAMETER: "#0072B2",
    Category.BUFFER: "#606060",
    Category.OPTIMIZER_STATE: "#56B4E9",
    Category.INPUT: "#F0E442",
    Category.GRADIENT: "#009E73",
    Category.ACTIVATION: "#E69F00",
    Category.TEMPORARY: "#CC79A7",
}

# The palette's vermilion, which no category has.
LIMIT_COLOR = "#D55E00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of everything that is not a category, as #rrggbb; the actions have the hues of the graph's drawing."""

    ink: str
    muted: str
    paper: str
    grid: str
    keep: str
    recompute: str
    swap: str
    reverse: str

    def action(self, action: Action) -> str:
        """The action's colour."""
        return {Action.KEEP: self.keep, Action.RECOMPUTE: self.recompute, Action.SWAP: self.swap, Action.REVERSE: self.reverse}[action]


LIGHT = Theme(
    ink="#1f2328", muted="#6b727b", paper="#ffffff", grid="#e3e6ea", keep="#2f6fb7", recompute="#b45309", swap="#00766c", reverse="#5b1570"
)
DARK = Theme(
    ink="#e6e8eb", muted="#9aa2ac", paper="#16181c", grid="#32363d", keep="#7db4f5", recompute="#ffa657", swap="#4fd1c0", reverse="#f7d0ff"
)


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
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "font": {"size": 11}},
            "modebar": {
                "remove": ["sendDataToCloud", "lasso2d", "select2d"],
                "bgcolor": "rgba(0,0,0,0)",
                "color": look.muted,
                "activecolor": look.ink,
            },
        }
    )
