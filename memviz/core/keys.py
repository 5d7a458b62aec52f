"""The name of a value: stable across batch sizes, sequence lengths and processes.

A key reads ``module.path:aten::op#output@call.nth``:

- ``module.path``: the innermost module that was running, ``""`` for the outermost one;
- ``aten::op``: the operator that made the value (for a parameter, buffer or input: its own name, and nothing after it);
- ``output``: which of the operator's outputs;
- ``call``: how often this module had been called before in the step, ``nth``: how often this operator had run before
  in that one call. A loop of 400 steps thus gives ``@0.2`` to ``@399.2`` for the third multiplication of each step.
"""

import re
from dataclasses import dataclass
from typing import Self

_KEY = re.compile(r"(?P<module>[^:]*):(?P<op>[^#@]+)#(?P<output>\d+)@(?P<call>\d+)\.(?P<nth>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The parts of a value's key.

    >>> str(Key(module="blocks.0.bn1", op="aten::relu", output=0, call=3, nth=1))
    'blocks.0.bn1:aten::relu#0@3.1'
    >>> Key.parse("blocks.0.bn1:aten::relu#0@3.1").call
    3
    """

    module: str
    op: str
    output: int
    call: int
    nth: int

    def __str__(self) -> str:
        return f"{self.module}:{self.op}#{self.output}@{self.call}.{self.nth}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a key back from text; ValueError where it isn't one."""
        match = _KEY.fullmatch(text)
        if match is None:
            msg = f"{text!r} is not a key; a key reads module.path:aten::op#output@call.nth, as in blocks.0:aten::relu#0@0.0"
            raise ValueError(msg)
        module, op, output, call, nth = match.groups()
        return cls(module=module, op=op, output=int(output), call=int(call), nth=int(nth))

    @property
    def site(self) -> str:
        """The key without its call: the same place in the program, whichever turn of the loop it is."""
        return f"{self.module}:{self.op}#{self.output}@*.{self.nth}"
