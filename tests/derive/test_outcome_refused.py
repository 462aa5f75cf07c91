"""Scripts whose torch.compile call raised: the outcome's reason, from recorded runs."""

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
