"""A hand-made step: x -> mm -> relu -> mm -> loss, whose numbers are worked out in the tests that use it."""

from memviz.core.trace import Category, Op, Phase, Save, Trace, Value

KIB = 1024


def op(index: int, name: str, phase: Phase, module: str, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Op:
    return Op(index=index, name=name, phase=phase, module=module, call=0, nth=0, inputs=inputs, outputs=outputs, seconds=1.0)


def value(id_: int, key: str, kib: int, category: Category, producer: int | None, released: int, freed: int) -> Value:
    born = -1 if producer is None else producer
    return Value(
        id=id_, storage=id_, key=key, nbytes=kib * KIB, dtype="float32", shape=(kib * 256,), device="cpu", category=category,
        producer=producer, born=born, last_used=released, released=released, freed=freed,
    )  # fmt: skip


def chain_trace() -> Trace:
    """Live KiB after each op when all is kept: 1+2+4=7, +4=11, +8=19, 3+4+4+8=19 less the freed, as the tests say."""
    forward, backward = Phase.FORWARD, Phase.BACKWARD
    return Trace(
        title="chain",
        device="cpu",
        ops=(
            op(0, "aten::mm", forward, "a", (0, 1), (2,)),
            op(1, "aten::relu", forward, "b", (2,), (3,)),
            op(2, "aten::mm", forward, "c", (3, 1), (4,)),
            op(3, "aten::mm", backward, "c", (3, 4), (5,)),
            op(4, "aten::threshold_backward", backward, "b", (3, 5), (6,)),
        ),
        values=(
            value(0, "x", 1, Category.INPUT, None, 5, 5),
            value(1, "w", 2, Category.PARAMETER, None, 5, 5),
            value(2, "a:aten::mm#0@0.0", 4, Category.ACTIVATION, 0, 2, 5),
            value(3, "b:aten::relu#0@0.0", 4, Category.ACTIVATION, 1, 3, 5),
            value(4, "c:aten::mm#0@0.0", 8, Category.TEMPORARY, 2, 4, 4),
            value(5, "c:aten::mm#0@0.1", 2, Category.GRADIENT, 3, 5, 5),
            value(6, "b:aten::threshold_backward#0@0.0", 1, Category.GRADIENT, 4, 5, 5),
        ),
        saves=(Save(value=2, packed=1, unpacked=(4,)), Save(value=3, packed=2, unpacked=(3, 4))),
    )
