"""A plan as the lines of Python that apply it in a training script."""

from dataclasses import fields

from memviz.core.plan import Plan, Swap

_LOOP = """\
for inputs, targets in batches:  # your own loop, model, loss_fn and optimizer
    optimizer.zero_grad()
    with mv.apply(plan):  # around forward only
        loss = loss_fn(model(inputs), targets)
    loss.backward()
    optimizer.step()
"""


def training_lines(plan: Plan) -> str:
    """A training loop under the plan, to paste: it needs batches, model, loss_fn and optimizer."""
    return f"import memviz as mv\n\nplan = {plan_source(plan)}\n\n{_LOOP}"


def plan_source(plan: Plan) -> str:
    """The expression that makes an equal plan where memviz is imported as ``mv``.

    Of rules with the same pattern only the last is written, as it always wins over the others.

    >>> print(plan_source(Plan(rules={"blocks.*:relu": "recompute"}, swap=Swap(occupancy=0.5))))
    mv.Plan(
        rules={
            'blocks.*:relu': 'recompute',
        },
        swap=mv.Swap(occupancy=0.5),
    )
    """
    # Taken out before it is put in again, so that it stands where its last rule stood.
    last: dict[str, str] = {}
    for rule in plan.rules:
        last.pop(rule.pattern, None)
        last[rule.pattern] = rule.action.value
    lines = [f"        {pattern!r}: {action!r},\n" for pattern, action in last.items()]
    arguments = [f"    rules={{\n{''.join(lines)}    }},\n"] if lines else []
    if plan.swap is not None:
        arguments.append(f"    swap={swap_source(plan.swap)},\n")
    if plan.label:
        arguments.append(f"    label={plan.label!r},\n")
    return f"mv.Plan(\n{''.join(arguments)})" if arguments else "mv.Plan()"


def swap_source(swap: Swap) -> str:
    """The expression that makes equal swap settings; what has its default is left out."""
    default = Swap()
    given = [(field.name, getattr(swap, field.name)) for field in fields(swap)]
    # An order is an enum whose value is the text that a caller writes.
    shown = [f"{name}={getattr(value, 'value', value)!r}" for name, value in given if value != getattr(default, name)]
    return f"mv.Swap({', '.join(shown)})"
