import pytest

from memviz.core.plan import Plan
from memviz.core.run import Agreement, Gradients
from memviz.core.trace import Category
from memviz.figures.holders import HolderRow, holder_rows
from memviz.figures.runs import RunRow, run_rows
from tests.figures.hand_made import MIB, run, timeline

LEAN = Plan(rules={"*": "recompute"}, label="lean")


def test_runs_are_compared_with_the_one_that_keeps_everything():
    rows = run_rows([run(LEAN, factor=MIB // 2, seconds=3.0), run(Plan(label="plain"))])
    lean, plain = rows
    assert (lean.peak, lean.activations, lean.seconds) == (5 * MIB, 9 * MIB // 2, 3.0)
    assert (lean.peak_ratio, lean.activations_ratio, lean.seconds_ratio) == (0.5, 0.5, 1.5)
    assert (lean.baseline, plain.baseline) == (False, True)
    assert lean.cells == ("lean", "5.0 MiB (50%)", "4.5 MiB (50%)", "3.00 s (150%)", "exact", "", "cpu")
    assert plain.cells == ("plain", "10.0 MiB", "9.0 MiB", "2.00 s", "exact", "", "cpu")
    assert len(RunRow.HEAD) == len(lean.cells)


def test_a_run_of_another_step_is_no_baseline():
    (other,) = [row for row in run_rows([run(title="one"), run(LEAN, title="two")]) if row.title == "two"]
    assert other.peak_ratio is None
    assert other.cells[1] == "10.0 MiB"


def test_a_plan_without_a_name_says_what_it_is():
    assert [row.label for row in run_rows([run(), run(Plan(rules={"*": "recompute"}))])] == ["no plan", "unnamed plan"]


@pytest.mark.parametrize(
    ("gradients", "said"),
    [
        (Gradients(agreement=Agreement.EXACT), "exact"),
        (Gradients(agreement=Agreement.CLOSE, max_difference=1.25e-7, worst="fc.weight"), "close (1.2e-07 in fc.weight)"),
        (Gradients(agreement=Agreement.DIFFERENT, max_difference=0.5), "different (5.0e-01)"),
        (Gradients(agreement=Agreement.UNCHECKED, reason="no unplanned step fits"), "not checked: no unplanned step fits"),
        (Gradients(agreement=Agreement.UNCHECKED), "not checked"),
    ],
)
def test_gradients_in_words(gradients, said):
    assert run_rows([run(gradients=gradients)])[0].gradients == said


def test_the_limit_is_in_the_table():
    assert run_rows([run(limit=12 * MIB)])[0].cells[5] == "12.0 MiB"


def test_holders_are_largest_first_and_sum_to_the_peak():
    rows = holder_rows(timeline())
    assert [row.module for row in rows] == ["b", "a", "c", "everything else"]
    assert [row.nbytes for row in rows] == [5 * MIB, 2 * MIB, MIB, 2 * MIB]
    assert sum(row.nbytes for row in rows) == timeline().peak
    assert [row.share for row in rows] == [0.5, 0.2, 0.1, 0.2]
    assert rows[0].category is Category.ACTIVATION
    assert rows[0].cells == ("b", "aten::relu", "net.py:7", "activation", "1", "5.0 MiB", "50.0%")
    assert len(HolderRow.HEAD) == len(rows[0].cells)


def test_what_is_not_listed_is_in_the_rest():
    rows = holder_rows(timeline(), most=1)
    assert [(row.module, row.nbytes) for row in rows] == [("b", 5 * MIB), ("everything else", 5 * MIB)]
