"""The controls row: each widget bound to one value of the state, with its error beside it."""

from collections.abc import Mapping
from html import escape

import ipywidgets as widgets
import traitlets

from memviz.core.parameters import Parameter, Setting
from memviz.widgets.state import MODES, ExplorerState


def with_error(state: ExplorerState, name: str, *controls: widgets.Widget) -> widgets.HBox:
    """The controls, and what is wrong with them."""
    message = widgets.HTML()

    def show(_change: object = None) -> None:
        text = state.errors.get(name, "")
        message.value = f'<span role="alert" style="color:#c62828">{escape(text)}</span>' if text else ""

    state.observe(show, ["errors"])
    return widgets.HBox([*controls, message])


def plan_controls(state: ExplorerState) -> widgets.VBox:
    """Mode, swap and limit."""
    mode = widgets.ToggleButtons(options=[(name.capitalize(), name) for name in MODES], description="recompute")
    swapping = widgets.Checkbox(description="swap", indent=False)
    occupancy = widgets.FloatSlider(min=0, max=1, step=0.05, description="occupancy")
    min_bytes = widgets.IntSlider(min=0, max=2**20, step=1024, description="min_bytes")
    limit = widgets.Text(description="limit", placeholder="none, or 6 GiB", continuous_update=False)
    bound = {"mode": mode, "swapping": swapping, "occupancy": occupancy, "min_bytes": min_bytes, "limit": limit}
    for name, control in bound.items():
        traitlets.link((state, name), (control, "value"))
    return widgets.VBox(
        [
            with_error(state, "mode", mode),
            with_error(state, "swap", swapping, occupancy, min_bytes),
            with_error(state, "limit", limit),
        ]
    )


def control_for(parameter: Parameter, value: Setting) -> widgets.Widget:
    """The control that a parameter's type asks for."""
    shared = {"value": value, "description": parameter.name, "tooltip": parameter.help}
    if parameter.choices:
        return widgets.Dropdown(options=parameter.choices, **shared)
    if isinstance(parameter.default, bool):
        return widgets.Checkbox(indent=False, **shared)
    kinds = {int: widgets.IntText, float: widgets.FloatText, str: widgets.Text}
    return kinds[type(parameter.default)](**shared)


def parameter_controls(state: ExplorerState, parameters: tuple[Parameter, ...], settings: Mapping[str, Setting]) -> widgets.VBox:
    """One control a parameter; what a parameter can't be stays out of the state."""
    state.parameters = dict(settings)
    return widgets.VBox([_bind(state, parameter, settings[parameter.name]) for parameter in parameters])


def _bind(state: ExplorerState, parameter: Parameter, value: Setting) -> widgets.HBox:
    control = control_for(parameter, value)

    def changed(change: Mapping[str, Setting]) -> None:
        try:
            checked = parameter.check(change["new"])
        except ValueError as error:
            state.complain(parameter.name, str(error))
            return
        state.complain(parameter.name, "")
        state.parameters = {**state.parameters, parameter.name: checked}

    control.observe(changed, ["value"])
    return with_error(state, parameter.name, control)
