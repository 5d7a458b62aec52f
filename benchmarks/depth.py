"""What depth costs a RevNet: what adding a block to a stage adds to what waits for backward, reversed and not."""

from collections.abc import Iterator

import memviz as mv
from benchmarks.findings import Finding, publish

DEPTHS = (1, 2, 4)
"""Blocks that are added to each of the three stages."""


def findings() -> Iterator[Finding]:
    """One for each depth."""
    base = {reverse: waiting(0, reverse=reverse) for reverse in (False, True)}
    for depth in DEPTHS:
        added = {reverse: waiting(depth, reverse=reverse) - base[reverse] for reverse in (False, True)}
        yield Finding(
            question=f"waiting for {depth} more blocks in each stage, RevNet reversed / not",
            measured=added[True] / added[False],
            target=0.02,
            details={
                "added_bytes": {"not reversed": added[False], "reversed": added[True]},
                "bytes_without": {"not reversed": base[False], "reversed": base[True]},
            },
        )


def waiting(extra_blocks: int, *, reverse: bool) -> int:
    """Bytes that wait at the end of forward."""
    return mv.run(mv.workloads.revnet(batch=16, extra_blocks=extra_blocks, reverse=reverse), repeats=0).activations


if __name__ == "__main__":
    publish("depth", findings())
