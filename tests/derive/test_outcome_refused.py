"""Scripts that call nothing compiled, or whose torch.compile call raised: the outcome's reason."""

import pytest


@pytest.mark.parametrize(
    ("name", "outcome", "said"),
    [
        ("option", "not_compiled", "torch.compile raised RuntimeError, and the script went on"),
        ("backend", "failed", "the script raised InvalidBackend at"),
        ("mode_options", "failed", "Either mode or options can be specified"),
    ],
)
def test_the_reason_names_the_error(tables_of, name, outcome, said):
    (row,) = tables_of(f"bad-cap_bad_args_{name}")["speedups"].to_dicts()
    assert row["outcome"] == outcome
    assert said in row["reason"]
    assert "known options" not in row["reason"]


def test_copies_of_what_was_compiled_in_place_are_nothing_compiled(tables_of):
    (row,) = tables_of("bad-cap_copy_in_eager")["speedups"].to_dicts()
    assert row["outcome"] == "not_compiled"
    assert "calls copies of what it compiled in place" in row["reason"]
    (row,) = tables_of("good-cap_copy_in_eager")["speedups"].to_dicts()
    assert row["outcome"] != "not_compiled"
