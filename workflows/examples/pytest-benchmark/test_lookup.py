"""Looks for names that are not there, in a list and in a set."""

import pytest

NAMES = [f"name-{i}" for i in range(2000)]


def look(names, wanted):
    return sum(name in names for name in wanted)


@pytest.mark.parametrize("kind", ["list", "set"])
def test_lookup(benchmark, kind):
    names = list(NAMES) if kind == "list" else set(NAMES)
    wanted = [f"other-{i}" for i in range(20)]
    assert benchmark(look, names, wanted) == 0
