"""How often Python's garbage collector runs while something keeps many small objects."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_lock = threading.Lock()
_inside = 0
_before = (0, 0, 0)
_within = (0, 0, 0)


@contextmanager
def fewer_collections(factor: int) -> Iterator[None]:
    """Within, the garbage collector runs ``factor`` times less often.

    Collections come by the number of new objects, and what outlives them brings on full ones, which go through all that the program
    has loaded. What is written down of each op would make a step pay for many of these, though reference counts free all of it.
    The threshold holds for the whole process: it is given back when the last thread leaves, unless somebody else has set it since.
    """
    _change(+1, factor)
    try:
        yield
    finally:
        _change(-1, factor)


def _change(entering: int, factor: int) -> None:
    global _inside, _before, _within  # noqa: PLW0603  # The collector's threshold is one for the process, too.
    with _lock:
        if not _inside:
            _before = gc.get_threshold()
            _within = (_before[0] * factor, *_before[1:])
            gc.set_threshold(*_within)
        _inside += entering
        if not _inside and gc.get_threshold() == _within:
            gc.set_threshold(*_before)
