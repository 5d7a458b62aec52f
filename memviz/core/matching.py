"""Which of many patterns on keys is the last to match one, found by look-up and not by trying them all."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from itertools import product

from memviz.core.keys import Key

_ESCAPED = re.compile(r"\[([*?[])\]")
_MANY = 65536


@dataclass(frozen=True, slots=True)
class Glob:
    """A glob as in ``fnmatch``, case counting: a ``literal`` if it matches only that, else a ``regex``, or neither if it matches all."""

    literal: str | None = None
    regex: re.Pattern[str] | None = None

    def matches(self, text: str) -> bool:
        """Whether it matches the whole text."""
        if self.regex is not None:
            return self.regex.match(text) is not None
        return self.literal is None or text == self.literal

    @property
    def simple(self) -> bool:
        """Whether it can be looked up."""
        return self.regex is None


@lru_cache(maxsize=_MANY)
def glob(text: str) -> Glob:
    """The glob of that text; ``[*]`` and the like stand for the character between the brackets."""
    if text == "*":
        return Glob()
    if not any(letter in _ESCAPED.sub("", text) for letter in "*?["):
        return Glob(literal=_ESCAPED.sub(r"\1", text))
    return Glob(regex=re.compile(translate(text)))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A rule's pattern in its four parts."""

    module: Glob
    op: Glob
    output: Glob
    calls: Glob

    def matches(self, key: Key) -> bool:
        """Whether all parts match."""
        return self.calls.matches(f"{key.call}.{key.nth}") and self.matches_place(key.module, key.op, str(key.output))

    def matches_place(self, module: str, op: str, output: str) -> bool:
        """Whether all parts but the calls match: a module's with everything inside it, an op's without ``aten::`` too."""
        return (
            self.output.matches(output)
            and (self.op.matches(op) or self.op.matches(op.removeprefix("aten::")))
            and any(map(self.module.matches, ancestry(module)))
        )


@lru_cache(maxsize=_MANY)
def parsed(pattern: str) -> Pattern:
    """The parts of ``module:op#output@call.nth``, where all but the module may be left out."""
    where, _, calls = pattern.partition("@")
    where, _, output = where.partition("#")
    module, _, op = where.partition(":")
    return Pattern(glob(module), glob(op or "*"), glob(output or "*"), glob(calls or "*"))


@lru_cache(maxsize=_MANY)
def ancestry(module: str) -> tuple[str, ...]:
    """The module's path and those of the modules around it, without the outermost."""
    parts = module.split(".")
    return tuple(".".join(parts[:depth]) for depth in range(len(parts), 0, -1))


class Calls:
    """The patterns that match a place, as far as their calls do: those of one call in a table, the others from the last back."""

    def __init__(self, found: Iterable[tuple[int, Glob]]) -> None:
        ordered = sorted(found, key=lambda pair: pair[0])
        self._one = {calls.literal: position for position, calls in ordered if calls.literal is not None}
        self._several = [(position, calls) for position, calls in reversed(ordered) if calls.literal is None]

    def last(self, calls: str) -> int | None:
        """Position of the last pattern that matches ``call.nth``; None if none does."""
        one = self._one.get(calls, -1)
        for position, several in self._several:
            if position < one:
                break
            if several.matches(calls):
                return position
        return one if one >= 0 else None


class LastMatch:
    """Patterns in order. A place is matched once, however many calls it has.

    >>> LastMatch(["*", "blocks.*:relu", "blocks.0:relu#0@3.0"]).at("blocks.0", "aten::relu", 0).last("2.0")
    1
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._exact: dict[tuple[str, str | None, str | None], list[tuple[int, Glob]]] = defaultdict(list)
        self._loose: list[tuple[int, Pattern]] = []
        self._places: dict[tuple[str, str, int], Calls] = {}
        for position, pattern in enumerate(map(parsed, patterns)):
            if pattern.module.literal is not None and pattern.op.simple and pattern.output.simple:
                place = pattern.module.literal, pattern.op.literal, pattern.output.literal
                self._exact[place].append((position, pattern.calls))
            else:
                self._loose.append((position, pattern))

    def at(self, module: str, op: str, output: int) -> Calls:
        """The patterns that match ``module:op#output``, for all its calls."""
        place = (module, op, output)
        if place not in self._places:
            self._places[place] = Calls(self._find(module, op, str(output)))
        return self._places[place]

    def _find(self, module: str, op: str, output: str) -> Iterator[tuple[int, Glob]]:
        for path, name, number in product(ancestry(module), {op, op.removeprefix("aten::"), None}, (output, None)):
            yield from self._exact.get((path, name, number), ())
        for position, pattern in self._loose:
            if pattern.matches_place(module, op, output):
                yield position, pattern.calls
