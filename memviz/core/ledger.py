"""Live bytes by category while a simulated step goes on, each storage counted once."""

from memviz.core.timeline import Holder
from memviz.core.trace import Category, Trace, Value


class Ledger:
    """Which values are live. Versions of one storage share its bytes; a value made again has a storage of its own."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.nbytes = dict.fromkeys(Category, 0)
        self.live = 0
        self._slots: dict[int, list[int]] = {}
        self._slot_of: dict[int, int] = {}
        self.history: list[tuple[int, list[int]]] = []
        """Each change: a storage and the values that it then held."""

    def __contains__(self, value: int) -> bool:
        return value in self._slot_of

    def add(self, value: Value, *, again: bool = False) -> None:
        """The value is live from now on; ``again`` if it has been recomputed, rebuilt or fetched."""
        if value.id in self._slot_of:
            return
        slot = -1 - value.id if again else value.storage
        self._slot_of[value.id] = slot
        self._change(slot, [*self._slots.get(slot, ()), value.id])

    def remove(self, value: int) -> None:
        """The value is gone; nothing happens if it wasn't live."""
        slot = self._slot_of.pop(value, None)
        if slot is not None:
            self._change(slot, [other for other in self._slots[slot] if other != value])

    def _change(self, slot: int, values: list[int]) -> None:
        for members, sign in ((self._slots.get(slot), -1), (values, 1)):
            if members:
                size = max(self.trace.values[value].nbytes for value in members)
                self.nbytes[self.trace.values[members[-1]].category] += sign * size
                self.live += sign * size
        self.history.append((slot, values))
        if values:
            self._slots[slot] = values
        else:
            self._slots.pop(slot, None)

    def holders(self, changes: int) -> list[Value]:
        """The newest live version of each storage after that many changes."""
        slots = dict(self.history[:changes])
        return [self.trace.values[members[-1]] for members in slots.values() if members]


def summed_holders(trace: Trace, values: list[Value]) -> tuple[Holder, ...]:
    """Holders, largest first; the turns of a loop share one line."""
    groups: dict[tuple[str, Category], list[Value]] = {}
    for value in values:
        site = value.key.partition("@")[0] + value.key.rpartition(".")[2] if "@" in value.key else value.key
        groups.setdefault((site, value.category), []).append(value)
    found = []
    for group in groups.values():
        first = group[0]
        op = trace.ops[first.producer] if first.producer is not None else None
        module, _, rest = first.key.partition(":")
        found.append(
            Holder(
                key=first.key,
                module=op.module if op else module,
                op=op.name if op else rest.partition("#")[0],
                source=op.source if op else None,
                nbytes=sum(value.nbytes for value in group),
                category=first.category,
                count=len(group),
            )
        )
    return tuple(sorted(found, key=lambda holder: -holder.nbytes))
