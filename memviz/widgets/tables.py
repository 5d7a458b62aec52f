"""The runs, and who holds the peak, as tables whose rows are part of the common selection."""

from collections.abc import Mapping
from functools import lru_cache

from memviz.core.failure import Failure
from memviz.core.graph import Graph
from memviz.core.keys import Key
from memviz.core.plan import Rule
from memviz.core.run import Agreement, Run
from memviz.core.timeline import Timeline
from memviz.core.units import format_bytes
from memviz.figures.holders import HolderRow, holder_rows
from memviz.figures.runs import RunRow, run_rows
from memviz.widgets.state import ExplorerState
from memviz.widgets.table import Cell, Column, Row, TableWidget

TONES = {Agreement.EXACT: "good", Agreement.CLOSE: "warn", Agreement.DIFFERENT: "bad", Agreement.UNCHECKED: ""}
NUMBERS = {"peak", "activations", "time", "limit", "values", "bytes", "of the peak"}


def columns(head: tuple[str, ...]) -> list[Column]:
    """The columns of a head; figures to the right."""
    return [Column(name=name, number=name in NUMBERS) for name in head]


class RunsTable:
    """Every run and every failure, in order. Choosing a run looks at it: its timeline and its holders are shown."""

    def __init__(self, state: ExplorerState) -> None:
        self._state = state
        self.widget = TableWidget(caption="Runs", columns=columns(RunRow.HEAD), empty="The first measured run appears here.")
        self.widget.on_msg(self._chosen)
        state.observe(self._draw, ["outcomes", "trace", "chosen"])

    def _draw(self, _change: object) -> None:
        state = self._state
        rows = iter(run_rows(state.runs))
        made = [self._run(index, one, next(rows)) if isinstance(one, Run) else failed(one) for index, one in enumerate(state.outcomes)]
        self.widget.show(made)
        measured = state.measured
        self.widget.marked = [str(index) for index, one in enumerate(state.outcomes) if one is measured]

    def _run(self, index: int, run: Run, row: RunRow) -> Row:
        here = self._state.describes(run)
        texts = dict(zip(RunRow.HEAD, row.cells, strict=True))
        texts["run"] = texts["run"] if here else f"{texts['run']}, {run.title}"
        notes = "; ".join(run.notes)
        cells = [
            Cell(text=f"{text} ⚠" if notes and name == "run" else text, title=notes if name == "run" else "")
            for name, text in texts.items()
        ]
        at = RunRow.HEAD.index("gradients")
        cells[at] = Cell(text=texts["gradients"], tone=TONES[row.agreement])
        return Row(id=str(index) if here else "", cells=cells, tone="" if here else "muted")

    def _chosen(self, _widget: object, content: Mapping[str, str], _buffers: object) -> None:
        if content.get("type") == "choose":
            index = int(content["id"])
            self._state.chosen = index if 0 <= index < len(self._state.outcomes) else None


def failed(failure: Failure) -> Row:
    """A failure among the runs: what was tried, and how it ended."""
    texts = dict.fromkeys(RunRow.HEAD, "")
    texts["run"] = failure.label or "a run"
    texts["limit"] = format_bytes(failure.limit) if failure.limit else ""
    cells = [Cell(text=text) for text in texts.values()]
    cells[RunRow.HEAD.index("gradients")] = Cell(text=failure.cause.value.replace("_", " "), tone="bad", title=failure.message)
    return Row(id="", cells=cells)


class HoldersTable:
    """Who is live at the peak of the run that is looked at. Choosing a row selects the place that made it, in every view."""

    def __init__(self, state: ExplorerState) -> None:
        self._state = state
        self.widget = TableWidget(caption="Who holds the peak", columns=columns(HolderRow.HEAD), empty="")
        self.widget.on_msg(self._chosen)
        self.drawn: Graph | None = None
        """The graph on show, whose nodes are what can be selected."""
        self._rows: tuple[HolderRow, ...] = ()
        state.observe(self._draw, ["outcomes", "trace", "predicted", "chosen"])
        state.observe(self._mark, ["selected"])

    def _draw(self, _change: object) -> None:
        state = self._state
        shown: Timeline | None = state.measured.timeline if state.measured is not None else state.predicted
        if shown is None:
            return
        self._rows = holder_rows(shown)
        whose = f"measured: {state.measured.plan.label}" if state.measured is not None else "predicted"
        self.widget.caption = f"Who holds the peak ({whose}, {format_bytes(shown.peak)} on {shown.device})"
        self.widget.show([Row(id=row.key, cells=[Cell(text=text) for text in row.cells]) for row in self._rows])
        self._mark()

    def _mark(self, _change: object = None) -> None:
        pattern = self._state.selected
        self.widget.marked = [row.key for row in self._rows if pattern and row.key and selects(pattern, row.key)]

    def _chosen(self, _widget: object, content: Mapping[str, str], _buffers: object) -> None:
        if content.get("type") == "choose":
            pattern = place_of(content["id"], self.drawn)
            self._state.selected = "" if pattern == self._state.selected else pattern


def selects(pattern: str, key: str) -> bool:
    """Whether what the pattern selects is, or made, the value of this key; also where the value is a parameter of the module."""
    if "@" in key:
        return Rule(pattern=pattern, action="keep").matches(_parsed(key))  # type: ignore[arg-type]
    module = key.rpartition(".")[0]
    return module == pattern or module.startswith(f"{pattern}.")


def place_of(key: str, drawn: Graph | None) -> str:
    """The pattern of the node in the graph that made a value; its module's where there is no such node."""
    if "@" not in key:
        return key.rpartition(".")[0]
    parsed = _parsed(key)
    nodes = (node.id for node in drawn.nodes if node.module == parsed.module and node.op == parsed.op) if drawn is not None else ()
    return next((pattern for pattern in nodes if selects(pattern, key)), parsed.module)


@lru_cache(maxsize=1024)
def _parsed(key: str) -> Key:
    return Key.parse(key)
