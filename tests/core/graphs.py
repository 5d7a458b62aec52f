"""Hand-made steps for the drawing; what is drawn of them is under fixtures/, for these tests and for the TypeScript ones."""

from memviz.core.graph import Graph, graph
from memviz.core.plan import Plan
from memviz.core.trace import Category, Module, Op, Phase, Save, Trace, Value
from tests.core.chains import chain_trace

KIB = 1024


class Tape:
    """A trace as it grows: every op takes a second, every value is 4 KiB."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.values: list[Value] = []
        self.saves: list[Save] = []

    def op(self, module: str, name: str, *inputs: int, call: int = 0, nth: int = 0, forward: int | None = None) -> int:
        """The id of the value that a further op makes; it equals the op's index."""
        index = len(self.ops)
        phase = Phase.FORWARD if forward is None else Phase.BACKWARD
        kind = Category.ACTIVATION if forward is None else Category.GRADIENT
        self.ops.append(
            Op(
                index=index, name=name, phase=phase, module=module, call=call, nth=nth, inputs=inputs, outputs=(index,), seconds=1.0,
                forward=forward, source=f"{module or 'model'}.py:{1 + nth % 2}",
            )
        )  # fmt: skip
        self.values.append(
            Value(
                id=index, storage=index, key=f"{module}:{name}#0@{call}.{nth}", nbytes=4 * KIB, dtype="float32", shape=(1024,),
                device="cpu", category=kind, producer=index, born=index, last_used=index, released=index, freed=index,
            )
        )  # fmt: skip
        return index

    def save(self, value: int, packed: int, *unpacked: int) -> None:
        self.saves.append(Save(value=value, packed=packed, unpacked=unpacked))

    def trace(self, title: str, *modules: Module) -> Trace:
        return Trace(title=title, device="cpu", ops=tuple(self.ops), values=tuple(self.values), saves=tuple(self.saves), modules=modules)


def loop_trace(turns: int) -> Trace:
    """A cell called in a loop, h = tanh(mm(h)), whose tanh is saved by itself and by the next turn's mm."""
    tape = Tape()
    hidden = None
    for turn in range(turns):
        product = tape.op("cell", "aten::mm", *(() if hidden is None else (hidden,)), call=turn)
        if hidden is not None:
            tape.save(hidden, product)
        hidden = tape.op("cell", "aten::tanh", product, call=turn)
        tape.save(hidden, hidden)
    return tape.trace("loop", Module(path="", kind="Model"), Module(path="cell", kind="Cell"))


def blocks_trace() -> Trace:
    """Two blocks in a row, the second reversible: a convolution whose output its relu saves, and a loss beside them."""
    tape = Tape()
    last, convolutions = (), []
    for block in ("0", "1"):
        convolution = tape.op(f"blocks.{block}.conv", "aten::convolution", *last)
        relu = tape.op(f"blocks.{block}", "aten::relu", convolution)
        convolutions.append((convolution, relu))
        last = (relu,)
    loss = tape.op("(step)", "aten::sum", *last)
    back = tape.op("(step)", "aten::expand", loss, forward=loss)
    for convolution, relu in reversed(convolutions):
        back = tape.op("(step)", "aten::threshold_backward", back, relu, forward=relu, nth=relu)
        tape.save(convolution, convolution, back)  # Packed while another op ran: the backward op says whose it is.
    kinds = {"": "Model", "blocks": "Sequential", "blocks.0": "Block", "blocks.0.conv": "Conv2d", "blocks.1": "Block"}
    modules = [Module(path=path, kind=kind, reversible=path == "blocks.1") for path, kind in kinds.items()]
    return tape.trace("blocks", *modules, Module(path="blocks.1.conv", kind="Conv2d"))


def fixtures() -> dict[str, Graph]:
    """What the files under fixtures/ hold, by their names."""
    half = {f"cell:tanh@{turn}.0": "swap" for turn in range(200)}
    return {
        "graph-chain": graph(chain_trace(), Plan(rules={"b": "recompute"})),
        "graph-loop": graph(loop_trace(400), Plan(rules=half)),
        "graph-blocks": graph(blocks_trace(), Plan(rules={"blocks.0": "recompute", "blocks.1": "reverse"})),
    }
