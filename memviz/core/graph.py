"""A recorded step as the tree and the links of a drawing, small however many turns a loop had."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from memviz.core.keys import Key
from memviz.core.plan import Action, Plan
from memviz.core.trace import PERSISTENT, Module, Op, Phase, Save, Trace, Value

MAX_TURNS = 8
"""Most times that one source line's op is drawn apart within one module; past it, the line is a loop and one node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """All calls of one forward op at one place in the program, and the backward ops that belong to them.

    ``id`` is also a rule's pattern, for everything the node saves.
    """

    id: str
    module: str
    op: str
    count: int
    seconds: float
    backward_seconds: float
    nbytes: int
    """Bytes of the values that it makes and that wait for backward, each counted once."""
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Values that one node makes and that are unpacked in the backward of another, or of the same.

    A value that several nodes save is in a link to each of them, so bytes of links may not be added up; those of nodes may.
    """

    id: str
    source: str
    target: str
    pattern: str
    """The rule pattern that sets the action of these values. It matches the same op in modules inside, too."""
    nbytes: int
    count: int
    action: Action | None
    """None where the plan treats some of the turns otherwise than others."""
    rule: str | None
    """Pattern of the plan's rule that sets the action; None where no rule does, or not one alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """What is drawn of a trace: modules and nodes in the order in which forward first reached them, and the links."""

    title: str
    modules: tuple[Module, ...]
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]


def graph(trace: Trace, plan: Plan | None = None) -> Graph:
    """The drawing of a trace under a plan (none: everything is kept).

    Ops that make nothing, such as views and what only counts in a buffer, are left out, and so are saves of what no plan
    touches (parameters, inputs).
    A save's target is the forward op of the backward op that unpacked it first; where that isn't known, the one that packed it.
    """
    sites = _Sites(trace)
    links = _links(trace, sites, plan or Plan())
    ends = {end for link in links for end in (link.source, link.target)}
    return Graph(title=trace.title, modules=trace.modules, nodes=tuple(_nodes(trace, sites, ends)), links=links)


def actions(drawn: Graph) -> dict[str, str]:
    """The action of each link by its id, ``mixed`` where turns differ: what the drawing needs when only the plan changes."""
    return {link.id: link.action.value if link.action else "mixed" for link in drawn.links}


class _Sites:
    """Where in the program an op or a value belongs."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        turns: dict[tuple[str, str, str | None], set[int]] = defaultdict(set)
        for op in trace.ops:
            turns[op.module, op.name, op.source].add(op.nth)
        self._loops = {line for line, found in turns.items() if len(found) > MAX_TURNS}
        self.places: dict[str, tuple[str, str]] = {}
        """Module and op of every node named so far."""

    def node(self, op: Op) -> str:
        return self._node(op.module, op.name, self._turn(op))

    def value(self, value: Value) -> tuple[str, str] | None:
        """The node and the pattern of what made a value; None for what no plan touches."""
        if value.category in PERSISTENT or "@" not in value.key:
            return None
        key = Key.parse(value.key)
        turn = str(key.nth) if value.producer is None else self._turn(self._trace.ops[value.producer])
        return self._node(key.module, key.op, turn), _pattern(key.module, key.op, f"#{key.output}", turn)

    def target(self, save: Save) -> str:
        unpacked = self._trace.ops[save.unpacked[0]].forward if save.unpacked else None
        return self.node(self._trace.ops[save.packed if unpacked is None else unpacked])

    def _node(self, module: str, op: str, turn: str) -> str:
        name = _pattern(module, op, "", turn)
        self.places[name] = (module, op)
        return name

    def _turn(self, op: Op) -> str:
        return "*" if (op.module, op.name, op.source) in self._loops else str(op.nth)


def _pattern(module: str, op: str, output: str, turn: str) -> str:
    literal = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in module)
    return f"{literal}:{op}{output}@*.{turn}"


def _links(trace: Trace, sites: _Sites, plan: Plan) -> tuple[Link, ...]:
    found: dict[tuple[str, str, str], dict[int, Value]] = defaultdict(dict)
    for save in trace.saves:
        value = trace.values[save.value]
        site = sites.value(value)
        if site is not None:
            found[(*site, sites.target(save))][value.id] = value
    return tuple(_link(ends, tuple(values.values()), plan) for ends, values in found.items())


def _link(ends: tuple[str, str, str], values: tuple[Value, ...], plan: Plan) -> Link:
    source, pattern, target = ends
    decided = {plan.rule(Key.parse(value.key)) for value in values}
    taken = {rule.action if rule else Action.KEEP for rule in decided}
    rules = {rule.pattern if rule else None for rule in decided}
    return Link(
        id=f"{pattern}>{target}",
        source=source,
        target=target,
        pattern=pattern,
        nbytes=sum(value.nbytes for value in values),
        count=len(values),
        action=taken.pop() if len(taken) == 1 else None,
        rule=rules.pop() if len(rules) == 1 else None,
    )


def _nodes(trace: Trace, sites: _Sites, ends: set[str]) -> Iterator[Node]:
    calls: dict[str, list[Op]] = defaultdict(list)
    backward: dict[str, float] = defaultdict(float)
    for op in trace.ops:
        if op.phase is Phase.FORWARD:
            calls[sites.node(op)].append(op)
        elif op.forward is not None:
            backward[sites.node(trace.ops[op.forward])] += op.seconds
    saved: dict[str, int] = defaultdict(int)
    for value_id in trace.saves_of:
        site = sites.value(trace.values[value_id])
        if site is not None:
            saved[site[0]] += trace.values[value_id].nbytes
    for end in sorted(ends - calls.keys()):  # Made where the recorder couldn't see it, or by a backward that is differentiated.
        module, name = sites.places[end]
        yield Node(id=end, module=module, op=name, count=0, seconds=0.0, backward_seconds=backward[end], nbytes=saved[end])
    for site, ops in calls.items():
        if site in ends or any(_makes_something(trace, op) for op in ops):
            yield Node(
                id=site,
                module=ops[0].module,
                op=ops[0].name,
                count=len(ops),
                seconds=sum(op.seconds for op in ops),
                backward_seconds=backward[site],
                nbytes=saved[site],
                source=ops[0].source,
            )


def _makes_something(trace: Trace, op: Op) -> bool:
    made = (trace.values[output] for output in op.outputs)
    return any(value.nbytes > 0 and value.category not in PERSISTENT for value in made)
