"""One storage while a step runs, and the name of what made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memviz.core.keys import Key
from memviz.core.timeline import Holder

if TYPE_CHECKING:
    import weakref
    from collections.abc import Iterable

    import torch

    from memviz.core.trace import Category
    from memviz.pytorch.scope import Frame


class Origin(NamedTuple):
    """Which output of which op call; its text is the key, made only once the step is over."""

    frame: Frame
    op: str
    output: int
    nth: int

    def __str__(self) -> str:
        return str(self.key)

    @property
    def key(self) -> Key:
        """The key."""
        return Key(module=self.frame.path, op=self.op, output=self.output, call=self.frame.call, nth=self.nth)


@dataclass(slots=True, eq=False)
class Held:
    """One storage: how large it is, what it is for, who made it, and over which ops it lived."""

    address: int
    nbytes: int
    category: Category
    origin: Origin | str
    module: str
    op: str
    born: int
    source: str | None = None
    gone: int | None = None
    reference: weakref.ref[torch.UntypedStorage] | None = None

    @property
    def key(self) -> str:
        """The key of what it held first."""
        return str(self.origin)


def summed(held: Iterable[Held]) -> tuple[Holder, ...]:
    """Who holds these, largest first; what one line of the program made, turn by turn of a loop, is one holder."""
    places: dict[tuple[object, ...], list[Held]] = {}
    for one in held:
        made = isinstance(one.origin, Origin)
        place = (one.module, one.op, one.source, one.category) if made else (one.key, one.category)
        places.setdefault(place, []).append(one)
    return tuple(sorted(map(_holder, places.values()), key=lambda holder: -holder.nbytes))


def _holder(group: list[Held]) -> Holder:
    first = group[0]
    return Holder(
        key=first.key,
        module=first.module,
        op=first.op,
        source=first.source,
        nbytes=sum(held.nbytes for held in group),
        category=first.category,
        count=len(group),
    )
