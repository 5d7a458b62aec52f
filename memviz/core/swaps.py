"""The swap model of a simulated step: what leaves, when, and when it is back (E6)."""

from collections import OrderedDict, defaultdict
from heapq import heappop, heappush

from memviz.core.ledger import Ledger
from memviz.core.machine import Machine
from memviz.core.plan import Action, Order, Plan, Swap
from memviz.core.rows import Rows
from memviz.core.schedule import ByOp, schedule
from memviz.core.timeline import Transfer
from memviz.core.trace import Trace


class Waiting:
    """Saved values that may leave, and which of them is next."""

    def __init__(self, trace: Trace, order: Order) -> None:
        self._trace, self._order = trace, order
        self._values: OrderedDict[int, int] = OrderedDict()
        self._largest: list[tuple[int, int, int]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, value: int) -> None:
        self._count += 1
        self._values[value] = self._count
        if self._order is Order.LARGEST:
            heappush(self._largest, (-self._trace.values[value].nbytes, self._count, value))

    def discard(self, value: int) -> None:
        self._values.pop(value, None)

    def pop(self) -> int:
        """The next; of several that are largest, the oldest."""
        if self._order is not Order.LARGEST:
            return self._values.popitem(last=self._order is Order.NEWEST)[0]
        while True:
            _, number, value = heappop(self._largest)
            if self._values.get(value) == number:
                del self._values[value]
                return value


class Swaps:
    """Moves values between the ledger and the host, on one link each way beside the rows' clock, when the engine does (E6)."""

    def __init__(self, trace: Trace, plan: Plan, machine: Machine, limit: int | None, ledger: Ledger, rows: Rows) -> None:
        swap = plan.swap or Swap()
        self.threshold = swap.occupancy * int(swap.limit or limit or machine.memory)
        self._min_bytes, self._prefetch, self._may_move_kept = int(swap.min_bytes), swap.prefetch, plan.swap is not None
        self._trace, self._machine, self._ledger, self._rows = trace, machine, ledger, rows
        self._last_use = schedule(trace).last_use
        self._out_free = self._in_free = 0.0
        self._offered: set[int] = set()
        self._urgent: list[int] = []
        self._waiting = Waiting(trace, swap.order)
        self._out: dict[int, float] = {}
        self._sent: list[int] = []
        self.due: list[int] = []
        """A heap of the ops before which to let go."""
        self._held: ByOp = defaultdict(list)
        self._back: ByOp = defaultdict(list)
        self.transfers: list[Transfer] = []

    def __contains__(self, value: int) -> bool:
        """Whether the value has been sent and not fetched again."""
        return value in self._out

    def pack(self, value: int, action: Action | None) -> None:
        """A value is saved: it may leave, or does after the op."""
        urgent = action is Action.SWAP
        if self._trace.values[value].nbytes >= self._min_bytes and (urgent or (action is Action.KEEP and self._may_move_kept)):
            self._offered.add(value)
            (self._urgent.append if urgent else self._waiting.add)(value)

    def relieve(self, index: int) -> None:
        """Forward has run the op before this one: values leave while the device is too full."""
        while self._urgent:
            self._send(self._urgent.pop(), index)
        while self._waiting and self._ledger.live > self.threshold:
            self._send(self._waiting.pop(), index)

    def let_go(self, index: int) -> None:
        """Before this op, what was sent goes once the program holds it no longer, and what came back once it was used for the last time."""
        for value in self._held.pop(index, ()):
            if value in self._out:
                self._ledger.remove(value)
        for value in self._back.pop(index, ()):
            self._ledger.remove(value)

    def use(self, value: int, index: int) -> None:
        """Backward needs the value before this op: it stays, or comes back, and what comes after it is fetched ahead."""
        if value in self._offered:
            if value in self._out:
                self._fetch(value, index)
                self._rows.stall(self._in_free)
            self._waiting.discard(value)
            if self._out:
                self._fetch_ahead(index)

    def _send(self, value_id: int, index: int) -> None:
        if value_id not in self._ledger:
            return
        value = self._trace.values[value_id]
        start = max(self._rows.clock, self._out_free)
        self._out[value_id] = self._out_free = start + value.nbytes / self._machine.swap_out
        self._sent.append(value_id)
        self.transfers.append(Transfer(key=value.key, nbytes=value.nbytes, out=True, start=start, end=self._out_free))
        if value.released < index:
            self._ledger.remove(value_id)
        else:
            self._held[value.released].append(value_id)
            heappush(self.due, value.released)

    def _fetch(self, value_id: int, index: int) -> None:
        value = self._trace.values[value_id]
        left = self._out.pop(value_id)
        if value_id not in self._ledger:
            start = max(self._rows.clock, self._in_free, left)
            self._in_free = start + value.nbytes / self._machine.swap_in
            self.transfers.append(Transfer(key=value.key, nbytes=value.nbytes, out=False, start=start, end=self._in_free))
            self._ledger.add_again(value_id)
            after = max(self._last_use.get(value_id, index), index) + 1
            self._back[after].append(value_id)
            heappush(self.due, after)

    def _fetch_ahead(self, index: int) -> None:
        """Backward needs last what left first, so the newest of what is away comes next."""
        while self._sent and self._sent[-1] not in self._out:
            self._sent.pop()
        for value in reversed(self._sent[-self._prefetch :] if self._prefetch else ()):
            if value in self._out and self._ledger.live + self._trace.values[value].nbytes <= self.threshold:
                self._fetch(value, index)
