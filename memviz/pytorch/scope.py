"""Which module is running, and the key of what an op makes in it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeAlias

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from memviz.core.keys import Key

Calls: TypeAlias = dict[str, frozenset[int]]
"""By op: which of its calls within one call of a module."""

Wanted: TypeAlias = dict[tuple[str, int], Calls]
"""By a module's path and the number of its call."""

OUTSIDE = "(step)"
"""The module path of what runs outside every module, such as the loss."""


@dataclass(slots=True)
class Frame:
    """One call of one module that has not returned yet."""

    path: str
    call: int
    counts: dict[str, int] = field(default_factory=dict)
    wanted: Calls | None = None
    """The ops that something may be recomputed from, where that is known."""
    needed: set[tuple[str, int]] = field(default_factory=set)
    """Op and nth of those that something was recomputed from."""

    def count(self, op: str) -> int:
        """How often the op has run in this call before."""
        nth = self.counts.get(op, 0)
        self.counts[op] = nth + 1
        return nth


class Scope:
    """Follows module calls through torch's global forward hooks while it is entered.

    The first outermost module that is called is ``""`` and its parts have the names of ``named_modules``; further
    outermost modules go by their class. Modules given to the constructor go by the names they are given.
    """

    def __init__(self, modules: dict[str, nn.Module] | None = None, wanted_by: Callable[[nn.Module], Wanted] = lambda _module: {}) -> None:
        self.wanted: Wanted = {}
        """What is wanted of the first outermost module and of what comes after it; all of everything where that is not known."""
        self.first: nn.Module | None = None
        self._wanted_by = wanted_by
        self.paths: dict[int, str] = {}
        self.kinds: dict[str, nn.Module] = {}
        self._calls: dict[str, int] = {}
        self.stack = [Frame(OUTSIDE, 0)]
        """The calls that have not returned, the innermost last."""
        self.frames = [*self.stack]
        """Every call so far."""
        self._hooks: list[Any] = []
        for name, module in (modules or {}).items():
            self._name(module, name)

    @property
    def frame(self) -> Frame:
        """The innermost call."""
        return self.stack[-1]

    def key(self, op: str, output: int, nth: int) -> Key:
        """The key of an output of the op that runs now."""
        return Key(module=self.frame.path, op=op, output=output, call=self.frame.call, nth=nth)

    def _name(self, module: nn.Module, root: str) -> None:
        for name, part in module.named_modules(prefix=root):
            self.paths.setdefault(id(part), name)
            self.kinds.setdefault(name, part)

    def _enter_module(self, module: nn.Module, _inputs: object) -> None:
        if id(module) not in self.paths:
            self._name(module, type(module).__name__ if self.kinds else "")
        if self.first is None:
            self.first, self.wanted = module, self._wanted_by(module)
            self.frame.wanted = self.wanted.get((OUTSIDE, 0))
        path = self.paths[id(module)]
        call = self._calls.get(path, 0)
        self._calls[path] = call + 1
        frame = Frame(path, call, wanted=self.wanted.get((path, call)))
        self.stack.append(frame)
        self.frames.append(frame)

    def _leave_module(self, module: nn.Module, _inputs: object, _output: object) -> None:
        if len(self.stack) > 1 and self.frame.path == self.paths.get(id(module)):
            self.stack.pop()

    def __enter__(self) -> Self:
        self._hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()


_PACKAGE = Path(__file__).parents[1]
_SKIPPED = (str(Path(torch.__file__).parent), "<")
_MODELS = str(_PACKAGE / "workloads" / "models")


def user_line() -> str | None:
    """The innermost running line that is neither torch's nor memviz's own, as ``file.py:12``."""
    frame = sys._getframe(1)  # inspect.stack reads source files for every frame
    while frame is not None and (name := _user_file(frame.f_code.co_filename)) is None:
        frame = frame.f_back
    return None if frame is None else f"{name}:{frame.f_lineno}"


@cache
def _user_file(path: str) -> str | None:
    """The file's name; None for torch's and memviz's own, less the models of its workloads."""
    ours = path.startswith(str(_PACKAGE)) and not path.startswith(_MODELS)
    return None if ours or path.startswith(_SKIPPED) else Path(path).name
