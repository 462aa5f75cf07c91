"""How much of a log's texts is given to derive and rules."""

import polars as pl
import pytest

from traceview.reading import opening

GRAPHS = pl.LazyFrame(
    {"compile_key": ["d", "a", "b", "a", "c"], "text": ["d" * 99, "a" * 3, "b" * 5, "a", "ccc"]}
)


@pytest.mark.parametrize(
    ("budget", "given"),
    [(1, "a"), (4, "a"), (5, "ab"), (9, "ab"), (10, "abc"), (13, "abcd"), (999, "abcde")],
)
def test_texts_of_the_dearest_compiles_are_given_until_they_are_too_many(
    monkeypatch, budget, given
):
    monkeypatch.setattr(opening, "MOST_TEXT_BYTES", budget)
    asked = []

    def read(keys):
        asked.extend(keys)
        return GRAPHS.filter(pl.col("compile_key").is_in(keys))

    found, graphs = opening._within_budget(read, ["a", "b", "c", "d", "e"])  # e has none
    assert "".join(found) == given
    assert set(graphs["compile_key"]) == set(given) - {"e"}
    assert len(asked) <= 3 * len(given)  # a log may hold far more


def test_without_compiles_there_are_graphs_of_none():
    none = GRAPHS.select(pl.lit(None, pl.String).alias("compile_key"), "text").head(1)

    def read(keys):
        return none.filter(pl.col("compile_key").is_null() | pl.col("compile_key").is_in(keys))

    found, graphs = opening._within_budget(read, [])
    assert found == []
    assert graphs.height == 1
