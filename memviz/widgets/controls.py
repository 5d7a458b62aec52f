"""The controls: each widget bound to one value of the state, with its error beside it."""

from collections.abc import Callable, Mapping
from html import escape

import ipywidgets as widgets
import traitlets

from memviz.core.parameters import Parameter, Setting
from memviz.widgets.planning import full_in_words
from memviz.widgets.session import Session
from memviz.widgets.state import MODES, ExplorerState

FIT = {"width": "auto"}
NARROW = {"description_width": "initial"}


def group(*children: widgets.Widget) -> widgets.Box:
    """Controls that belong together; they wrap where there is no room."""
    made = widgets.Box(children)
    made.add_class("memviz-group")
    return made


def bar(*children: widgets.Widget) -> widgets.Box:
    """A row of groups."""
    made = widgets.Box(children)
    made.add_class("memviz-bar")
    return made


def error_of(state: ExplorerState, name: str) -> widgets.HTML:
    """What is wrong with a control, if anything is."""
    message = widgets.HTML()
    message.add_class("memviz-error")

    def show(_change: object = None) -> None:
        text = state.errors.get(name, "")
        message.value = f'<span role="alert">{escape(text)}</span>' if text else ""
        message.layout.display = None if text else "none"

    state.observe(show, ["errors"])
    show()
    return message


def plan_controls(session: Session) -> widgets.Box:
    """Mode, swap and limit."""
    state = session.state
    mode = widgets.ToggleButtons(
        options=[(name.capitalize(), name) for name in MODES],
        tooltips=[
            "Keep every saved tensor",
            "Only what you set yourself, in the graph",
            "Recompute what costs little time; what you set yourself in the graph wins",
        ],
        style={"button_width": "auto"},
    )
    limit = widgets.Text(
        description="Limit", placeholder="none, or 6 GiB", continuous_update=False, layout={"width": "190px"}, style=NARROW
    )
    traitlets.link((state, "mode"), (mode, "value"))
    traitlets.link((state, "limit"), (limit, "value"))
    return bar(
        group(widgets.Label("Recompute"), mode, error_of(state, "mode")),
        group(limit, error_of(state, "limit")),
        group(*_swap(session), error_of(state, "swap")),
    )


def _swap(session: Session) -> list[widgets.Widget]:
    state = session.state
    swapping = widgets.Checkbox(description="Swap", indent=False, layout=FIT)
    occupancy = widgets.FloatSlider(
        min=0, max=1, step=0.05, description="occupancy", readout=False, style=NARROW, layout={"width": "230px"},
        tooltip="Waiting tensors leave the device while more than this part of it is in use",
    )  # fmt: skip
    min_bytes = widgets.Text(
        description="tensors of at least",
        continuous_update=False,
        style=NARROW,
        layout={"width": "200px"},
        tooltip="Smaller tensors stay, such as 2 KiB",
    )
    words = widgets.Label()
    for name, control in (("swapping", swapping), ("occupancy", occupancy)):
        traitlets.link((state, name), (control, "value"))
    traitlets.link((state, "min_bytes"), (min_bytes, "value"), transform=(str, str))
    occupancy.observe(lambda _change: state.set_trait("swapping", True), ["value"])  # Whoever drags it wants to see it swap.

    def show(_change: object = None) -> None:
        words.value = full_in_words(state, session.unplanned)

    state.observe(show, ["occupancy", "limit", "trace"])
    show()
    return [swapping, occupancy, words, min_bytes]


def run_controls(session: Session) -> widgets.Box:
    """Run, cancel, progress, and export."""
    state = session.state
    run = _button("Run", session.run, "play", "Step for real under this plan", "primary")
    cancel = _button("Cancel", session.cancel, "stop", "Stop between two ops")
    auto = widgets.Checkbox(description="run after every change", indent=False, layout=FIT)
    progress = widgets.FloatProgress(min=0, max=1, layout={"width": "160px"})
    stage, written = widgets.Label(), widgets.HTML()
    written.add_class("memviz-note")
    traitlets.link((state, "auto"), (auto, "value"))

    def export() -> None:
        path = session.export()
        written.value = f"wrote <b>{escape(path)}</b>" if path else ""

    def show(_change: object = None) -> None:
        progress.value, stage.value, cancel.disabled = state.fraction, state.stage, not state.running
        progress.layout.visibility = "visible" if state.running else "hidden"

    state.observe(show, ["fraction", "stage", "running"])
    show()
    exporting = _button("Export report", export, "download", "One HTML file that opens offline, and a file of the runs")
    return bar(
        group(run, cancel, auto),
        group(progress, stage),
        group(exporting, written, error_of(state, "export")),
        error_of(state, "run"),
    )


def _button(text: str, act: Callable[[], None], icon: str, tooltip: str, style: str = "") -> widgets.Button:
    made = widgets.Button(description=text, icon=icon, tooltip=tooltip, button_style=style, layout=FIT)
    made.on_click(lambda _button: act())
    return made


def rules_list(state: ExplorerState) -> widgets.Box:
    """What was set by hand, each with a button that takes it away."""
    listed = bar()

    def show(_change: object = None) -> None:
        heading = widgets.Label("Set by hand" + (" (not used while Recompute is None)" if state.mode == "none" else "") + ":")
        buttons = [
            _button(f"{rule.pattern}: {rule.action.value}", lambda rule=rule: state.drop_rule(rule), "times", "Take this away")
            for rule in state.rules
        ]
        listed.children = (heading, *buttons) if buttons else ()

    state.observe(show, ["rules", "mode"])
    return listed


def control_for(parameter: Parameter, value: Setting) -> widgets.Widget:
    """The control that a parameter's type asks for."""
    shared = {"value": value, "description": parameter.name, "tooltip": parameter.help, "style": NARROW, "layout": {"width": "200px"}}
    if parameter.choices:
        return widgets.Dropdown(options=parameter.choices, **shared)
    if isinstance(parameter.default, bool):
        return widgets.Checkbox(indent=False, **shared)
    kinds = {int: widgets.IntText, float: widgets.FloatText, str: widgets.Text}
    return kinds[type(parameter.default)](continuous_update=False, **shared)


def parameter_controls(state: ExplorerState, parameters: tuple[Parameter, ...]) -> widgets.Box:
    """One control a parameter; what a parameter can't be stays out of the state."""
    return bar(*(_bind(state, parameter, state.parameters[parameter.name]) for parameter in parameters))


def _bind(state: ExplorerState, parameter: Parameter, value: Setting) -> widgets.Box:
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
    return group(control, error_of(state, parameter.name))
