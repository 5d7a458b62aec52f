from dataclasses import replace

import numpy as np
import pytest

from memviz.core.timeline import Timeline
from memviz.core.trace import Category, Phase


def line(seconds: tuple[float, ...] = (1.0, 2.0), nbytes: tuple[int, ...] = (3, 4), reserved: tuple[int, ...] | None = (5, 6)) -> Timeline:
    return Timeline(
        predicted=False,
        device="cpu",
        seconds=np.array(seconds),
        nbytes={Category.ACTIVATION: np.array(nbytes)},
        phases=(Phase.FORWARD,) * 2,
        modules=("a", "b"),
        reserved=None if reserved is None else np.array(reserved),
    )


def test_timelines_of_equal_values_are_equal():
    assert line() == line()
    assert line(reserved=None) == line(reserved=None)
    assert line() != "a timeline"


@pytest.mark.parametrize(
    "other",
    [
        line((1.0, 3.0)),
        line(nbytes=(3, 5)),
        line(reserved=None),
        line(reserved=(5, 7)),
        replace(line(), nbytes={}),
        replace(line(), device="x"),
    ],
)
def test_a_timeline_with_another_value_anywhere_is_another(other: Timeline):
    assert line() != other
