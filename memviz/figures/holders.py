"""Who holds the peak, as plain data."""

from dataclasses import dataclass
from typing import ClassVar

from memviz.core.timeline import Holder, Timeline
from memviz.core.trace import Category
from memviz.core.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderRow:
    """What one place in the program holds at the peak: bytes, and their part of the peak (0 to 1).

    The row that stands for everything not listed has no category; its count is 0, as nobody counted.
    """

    module: str
    op: str
    source: str
    nbytes: int
    share: float
    count: int
    category: Category | None
    key: str

    HEAD: ClassVar[tuple[str, ...]] = ("module", "op", "line", "kind", "values", "bytes", "of the peak")

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, under ``HEAD``."""
        return (
            self.module,
            self.op,
            self.source,
            "" if self.category is None else self.category.value.replace("_", " "),
            str(self.count) if self.count else "",
            format_bytes(self.nbytes),
            f"{self.share:.1%}",
        )


def holder_rows(timeline: Timeline, most: int = 12) -> tuple[HolderRow, ...]:
    """At most ``most`` rows, largest first, and one for the rest: their bytes add up to the peak exactly."""
    held = sorted(timeline.holders, key=lambda holder: -holder.nbytes)[:most]
    rows = tuple(_row(holder, timeline.peak) for holder in held)
    rest = timeline.peak - sum(row.nbytes for row in rows)
    if not rest:
        return rows
    return (
        *rows,
        HolderRow(module="everything else", op="", source="", nbytes=rest, share=rest / timeline.peak, count=0, category=None, key=""),
    )


def _row(holder: Holder, peak: int) -> HolderRow:
    return HolderRow(
        module=holder.module or "the model",
        op=holder.op,
        source=holder.source or "",
        nbytes=holder.nbytes,
        share=holder.nbytes / peak if peak else 0.0,
        count=holder.count,
        category=holder.category,
        key=holder.key,
    )
