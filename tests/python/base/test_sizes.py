"""Message sizes as on the command line."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apenet.base.errors import InputError
from apenet.base.sizes import LARGEST_BYTES, checked_sizes, parse_size, parse_sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("4096", 4096), ("4K", 4096), ("4k", 4096), ("1M", 2**20), ("1MiB", 2**20), ("16B", 16), ("2G", 2**31)],
)
def test_one_size(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("16:128", [16, 32, 64, 128]),
        ("16:100", [16, 32, 64]),
        ("3:13", [3, 6, 12]),
        ("8:8", [8]),
        ("1K", [1024]),
        ("64,16,64", [16, 64]),
    ],
)
def test_sweeps(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-1",
        "-16:64",
        "0:16",
        "16:",
        ":16",
        "16:8",
        "1:2:3",
        "ten",
        "1.5K",
        "16;32",
        "1T",
        "16:0",
        "2048G",
        " ",
    ],
)
def test_invalid_sizes_are_named(text):
    with pytest.raises(InputError) as caught:
        parse_sizes(text)
    assert caught.value.name == "sizes"
    assert str(caught.value.value) in text or caught.value.value == text
    assert "expected" in str(caught.value)


@given(st.integers(1, LARGEST_BYTES), st.integers(1, LARGEST_BYTES))
def test_sweeps_double_and_stay_between_their_ends(one, other):
    low, high = sorted((one, other))
    sizes = parse_sizes(f"{low}:{high}")
    assert sizes[0] == low
    assert all(later == 2 * earlier for earlier, later in itertools.pairwise(sizes))
    assert sizes[-1] <= high < 2 * sizes[-1]


@given(st.text(max_size=12))
def test_any_text_is_sizes_or_refused(text):
    try:
        sizes = parse_sizes(text)
    except InputError:
        return
    assert sizes
    assert all(1 <= size <= LARGEST_BYTES for size in sizes)


@pytest.mark.parametrize("sizes", [[], [0], [-5], [16, True], [1.5], ["16"]])
def test_numbers_from_python_are_checked(sizes):
    with pytest.raises(InputError):
        checked_sizes(sizes)


def test_numbers_of_numpy_are_sizes():
    assert checked_sizes(np.array([64, 128])) == [64, 128]
    assert checked_sizes(np.int64(64)) == checked_sizes(64) == [64]
    with pytest.raises(InputError, match="whole numbers"):
        checked_sizes(np.array([64.0]))
