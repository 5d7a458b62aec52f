"""A table whose rows can be chosen; what it looks like is under extensions/."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import anywidget
import traitlets

from memviz.widgets.assets import check_built, script


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column's head, and whether it holds numbers, which are set to the right."""

    name: str
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell's text; ``tone`` (good, warn, bad) makes it a badge; ``title`` is what its tooltip says instead of the text."""

    text: str
    tone: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row; one without an ``id`` can't be chosen."""

    id: str
    cells: Sequence[Cell]
    tone: str = ""


class TableWidget(anywidget.AnyWidget):
    """Rows under columns. Choosing a row changes nothing by itself: it sends ``{"type": "choose", "id": the row's}``.

    Args:
        caption: Above the table.
        columns: From the left.
        empty: What stands there while there are no rows.

    Raises:
        ImportError: If the table's JavaScript was not built.
    """

    _esm = script("table")
    caption = traitlets.Unicode("").tag(sync=True)
    columns: traitlets.List[Any] = traitlets.List().tag(sync=True)
    rows: traitlets.List[Any] = traitlets.List().tag(sync=True)
    empty = traitlets.Unicode("").tag(sync=True)
    marked: traitlets.List[Any] = traitlets.List().tag(sync=True)
    """Ids of the rows that are marked."""

    def __init__(self, *, caption: str, columns: Iterable[Column], empty: str) -> None:
        check_built(self._esm, "table")
        heads = [{"name": column.name, "number": column.number} for column in columns]
        super().__init__(caption=caption, columns=heads, empty=empty)

    def show(self, rows: Iterable[Row]) -> None:
        """Show these rows instead."""
        self.rows = [{"id": row.id, "tone": row.tone, "cells": [_cell(cell) for cell in row.cells]} for row in rows]


def _cell(cell: Cell) -> dict[str, Any]:
    return {name: text for name, text in (("text", cell.text), ("tone", cell.tone), ("title", cell.title)) if text or name == "text"}
