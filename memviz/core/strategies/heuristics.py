"""Free recompute (E3): drop what a few cheap ops make again from values that are held anyway."""

from collections import defaultdict
from dataclasses import replace

from memviz.core.derive import chain, held_anyway
from memviz.core.keys import Key
from memviz.core.plan import Action, Rule
from memviz.core.trace import PERSISTENT, Trace, Value, once_per_trace

MAX_OPS = 16
"""Most ops that one value may cost. It keeps a recurrence from unrolling to its start."""

MIN_BYTES = 1024
"""What is smaller stays: there is nothing to gain."""

CHEAP = frozenset(
    [
        "abs", "add", "addcdiv", "addcmul", "bernoulli", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cat",
        "celu", "ceil", "clamp", "clamp_max", "clamp_min", "clone", "contiguous", "copy", "cos", "cumsum", "div", "dropout",
        "elu", "empty_like", "eq", "erf", "exp", "expand", "expm1", "fill", "floor", "full", "full_like", "ge", "gelu", "glu",
        "gt", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "index_select", "le", "leaky_relu", "lerp", "log", "log1p",
        "log2", "log_sigmoid_forward", "logical_and", "logical_not", "logical_or", "lt", "masked_fill", "maximum", "mean",
        "minimum", "mish", "mul", "ne", "neg", "new_empty", "new_full", "new_zeros", "ones_like", "pow", "reciprocal", "relu",
        "remainder", "repeat", "roll", "round", "rsqrt", "rsub", "scalar_tensor", "select_backward", "sigmoid", "sign", "silu",
        "sin", "softplus", "split", "sqrt", "square", "stack", "sub", "sum", "tan", "tanh", "threshold", "to", "_to_copy",
        "tril", "triu", "unbind", "var", "var_mean", "where", "zero", "zeros", "zeros_like", "native_batch_norm",
        "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "cudnn_batch_norm", "miopen_batch_norm",
        "_batch_norm_with_update", "native_group_norm", "native_layer_norm", "_fused_rms_norm", "native_dropout", "_softmax",
        "_log_softmax", "_safe_softmax", "uniform", "normal", "arange", "empty", "avg_pool2d", "constant_pad_nd",
        "max_pool2d_with_indices",
    ]
)  # fmt: skip
"""Ops whose time is that of reading and writing their operands, by name without ``aten::`` and the in-place underscore."""


def cheap(name: str) -> bool:
    """Whether running the op again costs little beside matmuls and convolutions."""
    return name.removeprefix("aten::").rstrip("_") in CHEAP


@once_per_trace
def recomputed(trace: Trace) -> frozenset[int]:
    """Ids of the saved values to recompute."""
    anyway = held_anyway(trace)
    overwritten = {value for op in trace.ops for value in op.mutates}
    dropped: set[int] = set()

    def held(value: int) -> bool:
        return value in anyway or (value in trace.saves_of and value not in dropped and value not in overwritten)

    for value_id in sorted(trace.saves_of):
        if not _worth_dropping(trace, trace.values[value_id]):
            continue
        dropped.add(value_id)  # Values before it are decided, so what its chain reads does not change any more.
        ops = chain(trace, value_id, held, MAX_OPS)
        if not ops or not all(cheap(trace.ops[op].name) for op in ops):
            dropped.discard(value_id)
    return frozenset(dropped)


def _worth_dropping(trace: Trace, value: Value) -> bool:
    unpacked = [index for save in trace.saves_of[value.id] for index in save.unpacked]
    return (
        value.category not in PERSISTENT
        and value.producer is not None
        and "@" in value.key
        and value.nbytes >= MIN_BYTES
        and not value.dtype.endswith(("bool", "int8"))
        # Something other than autograd holds it until it is used: a second copy would only be added.
        and (not unpacked or value.released <= min(unpacked))
        and value.released < value.freed
    )


@once_per_trace
def rules(trace: Trace) -> tuple[Rule, ...]:
    """One rule for each site where all calls are dropped, or all but a few, which rules of their own then keep; else one for each key."""
    found: list[Rule] = []
    kept: list[Key] = []
    exceptions: set[Key] = set()
    ruled: set[str] = set()
    for site, keys in _sites(trace).items():
        drops, stays = [key for key, drop in keys.items() if drop], [key for key, drop in keys.items() if not drop]
        kept += stays
        if not drops:
            continue
        ruled.add(site)
        if not stays or 1 + len(stays) < len(drops):
            found.append(_site_rule(drops[0], Action.RECOMPUTE))
            exceptions.update(stays)
        else:
            found += [_key_rule(key, Action.RECOMPUTE) for key in drops]
    return (*found, *(_key_rule(key, Action.KEEP) for key in kept if key in exceptions or _inside(key, ruled)))


def _sites(trace: Trace) -> dict[str, dict[Key, bool]]:
    """The saved keys of each site, and whether all values of the key are dropped."""
    dropped = recomputed(trace)
    sites: dict[str, dict[Key, bool]] = defaultdict(dict)
    for value_id in trace.saves_of:
        text = trace.values[value_id].key
        if "@" in text:
            key = Key.parse(text)
            keys = sites[key.site]
            keys[key] = keys.get(key, True) and value_id in dropped
    return sites


def _inside(key: Key, ruled: set[str]) -> bool:
    """Whether the rule of a module around the key's would match it too, as patterns match what is inside a module."""
    parts = key.module.split(".")
    return any(replace(key, module=".".join(parts[:depth])).site in ruled for depth in range(1, len(parts)))


def _site_rule(key: Key, action: Action) -> Rule:
    return Rule(pattern=f"{_literal(key.module)}:{_literal(key.op)}#{key.output}@*.{key.nth}", action=action)


def _key_rule(key: Key, action: Action) -> Rule:
    return Rule(pattern=f"{_literal(key.module)}:{_literal(key.op)}#{key.output}@{key.call}.{key.nth}", action=action)


def _literal(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)
