"""One storage while a step runs, and the name of what made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memviz.core.keys import Key
from memviz.core.timeline import Holder

if TYPE_CHECKING:
    import weakref

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
        return str(Key(module=self.frame.path, op=self.op, output=self.output, call=self.frame.call, nth=self.nth))


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

    def holder(self) -> Holder:
        """As a line of who holds the peak."""
        return Holder(key=self.key, module=self.module, op=self.op, source=self.source, nbytes=self.nbytes, category=self.category)
