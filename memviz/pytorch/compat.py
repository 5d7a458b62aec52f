"""Every private or version-dependent name of torch that memviz uses, with the version it was seen in."""

import os
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from memviz.core.units import parse_bytes

BATCH_NORMS = {  # position of the training flag, None where it always trains (torch 2.11 - 2.13)
    "aten::native_batch_norm": 5,
    "aten::_native_batch_norm_legit": 5,
    "aten::cudnn_batch_norm": 5,
    "aten::miopen_batch_norm": 5,
    "aten::_batch_norm_with_update": None,
}
RUNNING_STATISTICS = (3, 4)  # their positions in every op above; native_batch_norm's schema does not say it writes them
FILLING = frozenset(f"aten::{op}_" for op in ("bernoulli", "normal", "uniform", "exponential", "random", "fill", "zero", "copy"))
UNSEEN_WRITES = frozenset({"aten::set_", "aten::resize_", "aten::resize_as_", "aten::_resize_output_", "aten::record_stream"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What an op's schema says: its name, which arguments it writes, and whether it can run again (E5)."""

    name: str
    writes: tuple[int | str, ...]
    random: bool
    replayable: bool
    view: bool
    """Whether it may give back another tensor on an argument's storage."""
    reads: bool
    """Whether it takes tensors."""

    @property
    def empty(self) -> bool:
        """Whether it makes a tensor with nothing in it yet."""
        return self.replayable and self.name.startswith(("aten::empty", "aten::new_empty"))

    @property
    def factory(self) -> bool:
        """Whether it makes a tensor out of numbers alone, always the same and with something in it."""
        return self.replayable and not self.random and not self.name.startswith("aten::empty")

    @property
    def _simple(self) -> bool:
        return self.replayable and self.reads and not (self.writes or self.random or self.empty or self.name in BATCH_NORMS)

    simple: bool = field(init=False, default=False)
    """Whether all that it does is to make its results out of its arguments, the same each time."""
    normalises: bool = field(init=False, default=False)
    """Whether it may write running statistics, of which its schema need not say so."""
    in_place: bool = field(init=False, default=False)
    """Whether its first argument is what it writes to."""
    updates: bool = field(init=False, default=False)
    """Whether all that it does is to put its result in the place of its first argument, which it reads."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "simple", self._simple)
        object.__setattr__(self, "normalises", self.name in BATCH_NORMS)
        object.__setattr__(self, "in_place", self.writes == (0,))
        plain = self.replayable and not self.random and self.name not in FILLING and self.name not in BATCH_NORMS
        object.__setattr__(self, "updates", plain and self.in_place)


def traits(func: torch._ops.OpOverload) -> Traits:
    """The traits of one operator."""
    found = known_traits.get(id(func))
    if found is None:
        found = known_traits[id(func)] = _read_schema(func)
        _known_ops.append(func)
    return found


known_traits: dict[int, Traits] = {}
"""The traits of the operators seen so far, by identity: an operator's hash is computed in Python."""

_known_ops: list[torch._ops.OpOverload] = []


def _read_schema(func: torch._ops.OpOverload) -> Traits:
    schema = func._schema
    aliased = [result.alias_info for result in schema.returns]
    return Traits(
        name=schema.name,
        writes=tuple(
            argument.name if argument.kwarg_only else position
            for position, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ),
        random=torch.Tag.nondeterministic_seeded in func.tags,
        replayable=schema.name.startswith("aten::") and schema.name not in UNSEEN_WRITES,
        view=any(alias is not None and not alias.is_write for alias in aliased),
        reads=any("Tensor" in str(argument.type) for argument in schema.arguments),
    )


def written(traits: Traits, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors that a call of the op writes to, running statistics among them."""
    found: list[Any] = [
        kwargs.get(where) if isinstance(where, str) else (args[where] if where < len(args) else None) for where in traits.writes
    ]
    if traits.name in BATCH_NORMS and _trains(traits, args):
        found += [args[at] for at in RUNNING_STATISTICS]
    flat = [part for entry in found for part in (entry if isinstance(entry, list | tuple) else [entry])]
    return list({id(tensor): tensor for tensor in flat if isinstance(tensor, torch.Tensor)}.values())


def only_written(traits: Traits, args: Any) -> set[int]:
    """The ids of the tensors that a call of the op writes to and does not read (E5: running statistics change once)."""
    if traits.name not in BATCH_NORMS or not _trains(traits, args):
        return set()
    return {id(args[at]) for at in RUNNING_STATISTICS if args[at] is not None}


def _trains(traits: Traits, args: Any) -> bool:
    flag = BATCH_NORMS[traits.name]
    return flag is None or bool(args[flag])


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor on the same storage, like ``tensor.data``, that no dispatch mode sees being made (torch 2.11 - 2.13)."""
    guard = torch._C._DisableTorchDispatch()
    try:
        return tensor.data
    finally:
        del guard


def sibling(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor on a plain tensor's storage, like ``tensor.detach()``, with the same version counter (torch 2.11 - 2.13).

    Held in the place of a tensor that autograd saves, it does not hold the graph that made the tensor: a node would otherwise hold
    its own output, and so itself, in a way that the garbage collector can't see. No dispatch mode sees it being made.
    """
    guard = torch._C._DisableTorchDispatch()
    try:
        return tensor.detach()
    finally:
        del guard


def probe(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of no bytes with the same version counter; no dispatch mode sees it being made (torch 2.11 - 2.13)."""
    guard = torch._C._DisableTorchDispatch()
    try:
        found = tensor.detach()
        found.data = _nothing(tensor.dtype, tensor.device)
    finally:
        del guard
    return found


@cache
def _nothing(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(0, dtype=dtype, device=device)


def num_owners(storage: torch.UntypedStorage) -> int:
    """How many tensors and Python objects hold the storage, the one that was passed among them (torch 2.11 - 2.13)."""
    return torch._C._storage_Use_Count(storage._cdata)


def in_backward() -> bool:
    """Whether autograd is running a backward pass on this thread (torch 2.11 - 2.13)."""
    return graph_task() != -1


graph_task = torch._C._current_graph_task_id
"""The number of the backward pass that runs on this thread, -1 where none does (torch 2.11 - 2.13)."""


class BelowAutograd:
    """A context to run ops as a dispatch mode saw them: no autograd, no autocast (torch 2.11 - 2.13)."""

    __slots__ = ("_grad", "_guards")

    def __enter__(self) -> None:
        self._grad = torch.is_grad_enabled()
        self._guards = torch._C._AutoDispatchBelowAutograd(), torch._C._DisableAutocast()
        torch._C._set_grad_enabled(False)  # noqa: FBT003

    def __exit__(self, *_: object) -> None:
        torch._C._set_grad_enabled(self._grad)
        del self._guards


def device_memory(device: torch.device | None) -> int:
    """Bytes of a device's memory; the host's for the CPU."""
    if device is not None and device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


_REQUESTED = re.compile(r"Tried to allocate ([\d.]+ \w+)")


def requested_bytes(error: torch.OutOfMemoryError) -> int:
    """The bytes that the allocator's message says were asked for; 0 where it doesn't (torch 2.11 - 2.13)."""
    found = _REQUESTED.search(str(error))
    return parse_bytes(found[1]) if found else 0


def sequence_number() -> int:
    """The number that autograd gives its next node on this thread (torch 2.11 - 2.13)."""
    return torch.autograd._get_sequence_nr()


def backward_sequence_number() -> int | None:
    """The number of the autograd node that is running on this thread, if one is (torch 2.11 - 2.13)."""
    node = torch._C._current_autograd_node()
    return None if node is None else node._sequence_nr()


_UNADORNED = frozenset({torch.Tensor, torch.nn.Parameter})
_plain_by_keys: dict[int, bool] = {}


def plain(tensor: torch.Tensor) -> bool:
    """Whether it is a dense tensor whose storage holds just what it shows: no subclass, lazy conjugate or inference tensor."""
    if type(tensor) not in _UNADORNED:
        return False
    keys = torch._C._dispatch_keys(tensor).raw_repr()  # They say all of what _dense asks, at once (torch 2.11 - 2.13).
    found = _plain_by_keys.get(keys)
    if found is None:
        found = _plain_by_keys[keys] = _dense(tensor)
    return found


def _dense(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not tensor.is_inference()
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        and tensor.device.type != "meta"
    )
