"""Rows, intervals, swings and axes without effect, on made-up results."""

import math

import pytest

from apenet.study.queries import query_rows
from apenet.study.rows import default_value, row_values, typed, varying
from apenet.study.summary import Swing, compared, intervals, swings_of, without_effect


def test_a_row_has_the_axes_and_every_single_value():
    result = {"machine": "x", "version": "1", "virtual_time_us": 2.5, "finish_us": {"max": 3}, "ranks": [1, 2]}
    assert list(row_values({"machine": "pax", "-n": "4"}, result)) == [
        {"machine": "pax", "-n": 4, "virtual_time_us": 2.5, "finish_us.max": 3}
    ]


def test_each_measured_size_is_a_row():
    result = {"nodes": 2, "points": [{"size_bytes": 1, "time_us": 5}, {"size_bytes": 2, "time_us": 6}]}
    rows = list(row_values({"machine": "pax"}, result))
    assert rows == [
        {"machine": "pax", "nodes": 2, "size_bytes": 1, "time_us": 5},
        {"machine": "pax", "nodes": 2, "size_bytes": 2, "time_us": 6},
    ]
    assert default_value(rows) == "time_us"
    assert varying(rows, ["machine", "nodes", "size_bytes"]) == ["size_bytes"]


def test_values_of_axes_are_numbers_where_they_can_be():
    assert [typed(text) for text in ("3", "2.5", "[4,4]", "torus")] == [3, 2.5, "[4,4]", "torus"]


def drawn(values, given=10.0):
    return [{"machine": "m", "draw": 0, "time_us": given}] + [
        {"machine": "m", "draw": number, "time_us": value} for number, value in enumerate(values, 1)
    ]


def test_an_interval_is_that_of_the_draws_without_the_given_machine():
    (one,) = intervals(drawn(range(101)), ["machine"], "time_us").values()
    assert (one.given, one.median, one.low, one.high, one.draws) == (10.0, 50.0, 5.0, 95.0, 101)


def test_swings_come_strongest_first():
    numbers = {"m": {0: {}, 1: {"a": 1.0}, 2: {"a": 2.0}, 3: {"b": 5.0}, 4: {"b": 1.0}, 5: {"c": 1.0}, 6: {"c": 2.0}}}
    rows = [row for row in drawn([9.0, 11.0, 30.0, 8.0, 10.0, 10.0]) if row["draw"] != 2]
    assert swings_of(rows, ["machine"], numbers, "time_us") == {
        ("m",): [Swing("b", 10.0, 8.0, 30.0), Swing("a", 10.0, 9.0, None), Swing("c", 10.0, 10.0, 10.0)]
    }


def grid(time):
    return [
        {"machine": machine, "x": x, "y": y, "time_us": time(machine, x, y)}
        for machine in ("one", "two")
        for x in (1, 2)
        for y in (1, 2)
    ]


@pytest.mark.parametrize(
    ("time", "found"),
    [
        (lambda _machine, x, y: x + y, []),
        (lambda _machine, _x, y: y, [("x", ["one", "two"])]),
        (lambda machine, x, y: x + (y if machine == "one" else 0), [("y", ["two"])]),
        (lambda _machine, x, y: x * (y - 1), []),
        (lambda _machine, _x, _y: None, [("x", ["one", "two"]), ("y", ["one", "two"])]),
    ],
)
def test_an_axis_without_effect_is_named_with_the_machines(time, found):
    assert without_effect(grid(time), ["machine", "x", "y"]) == found


def test_one_value_shows_no_effect_and_no_lack_of_it():
    assert without_effect(grid(lambda *_: 1)[:1], ["machine", "x", "y"]) == []


def test_two_studies_are_compared_where_both_have_a_value():
    first, second = grid(lambda _m, x, y: x + y), grid(lambda _m, x, y: 2 * (x + y))[1:]
    table = compared(first, second, ["machine", "x", "y"], "time_us")
    assert len(table) == 7
    assert all(math.isclose(row["change_percent"], 100) for row in table)


def test_a_query_sees_rows_and_changes_nothing():
    rows = grid(lambda _m, x, y: x + y)
    assert query_rows(rows, "SELECT machine, max(time_us) FROM rows GROUP BY machine") == (
        ["machine", "max(time_us)"],
        [("one", 4), ("two", 4)],
    )
