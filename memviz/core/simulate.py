"""What a plan would do to a recorded step: the predicted timeline."""

from memviz.core.limits import check_limit, resident_bytes
from memviz.core.machine import Machine, machine_for
from memviz.core.plan import Plan
from memviz.core.timeline import Timeline
from memviz.core.trace import Trace, check_trace
from memviz.core.units import Bytes
from memviz.core.walk import walk


def simulate(trace: Trace, plan: Plan | None = None, machine: Machine | None = None, *, limit: Bytes | None = None) -> Timeline:
    """Predict the step's memory and time under a plan.

    Args:
        trace: The unplanned step.
        plan: None keeps everything.
        machine: Speeds and memory; None for the preset of the trace's device.
        limit: Bytes (or text) that count as full for swapping, where the plan's ``swap`` gives none.

    Returns:
        A timeline with one entry for each op and for each op that runs again; ``recomputed`` has the latter's indices.
        Seconds are scaled so that the unplanned step takes ``trace.seconds``, if that is known.

    Raises:
        ValueError: For something else than a trace, a plan or a machine, or a limit below what parameters and buffers need.

    Known limits: fragmentation and an op's inner workspace are not modelled. A value that is swapped is away as soon as it is sent,
    where the engine may have 2% of what counts as full still on its way.
    """
    check_trace(trace, "simulate")
    if not isinstance(plan, Plan | None):
        msg = f"plan is a Plan, as mv.plan(trace, recompute='heuristics') returns, or None, not {plan!r}"
        raise ValueError(msg)
    if not isinstance(machine, Machine | None):
        msg = f"machine is a Machine, as memviz.core.machine.machine_for('H200') returns, or None, not {machine!r}"
        raise ValueError(msg)
    full = check_limit(limit, resident_bytes(trace))
    if plan is not None and plan.swap is not None:
        check_limit(plan.swap.limit, resident_bytes(trace), name="swap's limit")
    return walk(trace, plan or Plan(), machine or machine_for(trace.device), full)
