"""The swap model of a simulated step: what leaves, when, and when it is back (E6)."""

import math
from collections import OrderedDict, defaultdict
from heapq import heappop, heappush
from itertools import islice

from memviz.core.ledger import Ledger
from memviz.core.machine import Machine
from memviz.core.plan import Action, Order, Swap
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
    """Moves values between the ledger and the host, on one link each way beside the rows' clock."""

    def __init__(self, trace: Trace, swap: Swap | None, machine: Machine, limit: int | None, ledger: Ledger, rows: Rows) -> None:
        full = swap.limit if swap is not None and swap.limit is not None else limit or machine.memory
        self._threshold = swap.occupancy * int(full) if swap is not None else math.inf
        self._min_bytes = int(swap.min_bytes) if swap is not None else math.inf
        self._prefetch = swap.prefetch if swap is not None else 0
        self._trace, self._machine, self._ledger, self._rows = trace, machine, ledger, rows
        self._waiting = Waiting(trace, swap.order if swap is not None else Order.OLDEST)
        self._used = schedule(trace).first_use
        self._out_free = self._in_free = 0.0
        self._out: OrderedDict[int, float] = OrderedDict()
        self.leaving: ByOp = defaultdict(list)
        """What was sent, by the op at which nothing else holds it any more."""
        self.transfers: list[Transfer] = []

    def __contains__(self, value: int) -> bool:
        """Whether the value has been sent and not fetched again."""
        return value in self._out

    def leave(self, value: int) -> None:
        """Let go of a value that was sent, unless it had to be fetched before it was gone."""
        if value in self._out:
            self._ledger.remove(value)

    def pack(self, value: int, index: int, action: Action | None) -> None:
        """A value is saved: it may leave, or does at once; older ones go while the device is too full."""
        if action is Action.SWAP:
            self._send(value, index)
        elif action is Action.KEEP and self._trace.values[value].nbytes >= self._min_bytes:
            self._waiting.add(value)
        while self._waiting and self._ledger.live > self._threshold:
            self._send(self._waiting.pop(), index)

    def use(self, value: int) -> None:
        """Backward needs the value: it stays, or comes back, and what comes after it is fetched ahead."""
        if value in self._out:
            self._fetch(value)
            self._rows.stall(self._in_free)
            self._fetch_ahead()
        self._waiting.discard(value)

    def _send(self, value_id: int, index: int) -> None:
        if value_id not in self._ledger:
            return
        value = self._trace.values[value_id]
        start = max(self._rows.clock, self._out_free)
        self._out[value_id] = self._out_free = start + value.nbytes / self._machine.swap_out
        self.transfers.append(Transfer(key=value.key, nbytes=value.nbytes, out=True, start=start, end=self._out_free))
        if value.released <= index:
            self._ledger.remove(value_id)
        else:
            self.leaving[value.released].append(value_id)

    def _fetch(self, value_id: int) -> None:
        value = self._trace.values[value_id]
        left = self._out.pop(value_id)
        if value_id not in self._ledger:
            start = max(self._rows.clock, self._in_free, left)
            self._in_free = start + value.nbytes / self._machine.swap_in
            self.transfers.append(Transfer(key=value.key, nbytes=value.nbytes, out=False, start=start, end=self._in_free))
            self._ledger.add_again(value_id)

    def _fetch_ahead(self) -> None:
        for value in list(islice(reversed(self._out), self._prefetch)):
            if value in self._used and self._ledger.live + self._trace.values[value].nbytes <= self._threshold:
                self._fetch(value)
