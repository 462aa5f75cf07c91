"""Compile ids as torch writes them."""

from __future__ import annotations

import pytest

from traceview.compile_id import CompileId, compile_key


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0/0", CompileId(0, 0)),
        ("[3/12]", CompileId(3, 12)),
        ("0/0_1", CompileId(0, 0, attempt=1)),
        ("[!0/1/0]", CompileId(1, 0, compiled_autograd_id=0)),
        ("!2/4/1_3", CompileId(4, 1, attempt=3, compiled_autograd_id=2)),
        ("[!3]", CompileId(None, None, compiled_autograd_id=3)),
    ],
)
def test_parse(text, expected):
    assert CompileId.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "-", "0", "a/b", "0/0/0", "0/", "!/0", "[]", f"{10**18}/0", "9" * 5000 + "/0"]
)
def test_what_is_no_id(text):
    assert CompileId.parse(text) is None


def test_attempts_are_joined_and_epochs_kept_apart():
    first, second = CompileId.parse("0/0"), CompileId.parse("0/0_1")
    assert str(first) == str(second) == "0/0"
    assert compile_key("cold", 7, 0, first) == compile_key("cold", 7, 0, second)
    assert compile_key("cold", 7, 0, first) != compile_key("cold", 7, 1, first)
