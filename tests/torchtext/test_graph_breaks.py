"""Graph breaks as the structured log and TORCH_LOGS write them."""

import pytest

from traceview.torchtext.graph_breaks import parse_graph_break

BODY = """\
Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
    with argument types ['str']
  Hint: Avoid calling builtin `print`.
  Hint: Please report an issue to PyTorch.

  Developer debug context: builtin print [<class 'X'>] False
"""
TRACE = (
    '\nUser code traceback:\n  File "/p/s.py", line 44, in <module>\n    f(x)\n'
    '  File "/p/s.py", line 14, in f\n    print(1)\n\n'
    'Traceback (most recent call last):\n  File "/t.py", line 1, in g\n'
)
LINK = "\n For more details about this graph break, please visit: https://x.io/gb/gb0059.html\n"


@pytest.mark.parametrize(
    ("reason", "version"),
    [
        (f"Graph Break Reason: {BODY}{TRACE}", "2.8"),
        (f"Graph Break Reason: {BODY}{LINK}{TRACE}", "2.10"),
        (
            "Graph Break Reason: Encountered graph break when attempting to trace CALL: a function "
            f"call, e.g. f(x, y):\n\n{BODY}{LINK}\nStack variable source attribution:\n  x\n"
            f"{TRACE}",
            "2.13",
        ),
    ],
)
def test_a_graph_break_reads_the_same_from_every_version(reason, version):
    found = parse_graph_break(f"Graph break in user code at /p/s.py:14\n{reason}")
    assert found.gb_type == "Failed to trace builtin operator", version
    assert found.gb_id == "GB0059"
    assert found.explanation.splitlines() == [
        "Dynamo does not know how to trace builtin operator `print`",
        "with argument types ['str']",
    ]
    assert found.hints == ("Avoid calling builtin `print`.", "Please report an issue to PyTorch.")
    assert found.context == "builtin print [<class 'X'>] False"
    assert (found.user_file, found.user_line) == ("/p/s.py", 14)
    assert [f.function for f in found.stack] == ["<module>", "f"]
    assert not found.frame_skipped
    assert "Traceback" not in found.reason


def test_a_skipped_frame_is_known_by_its_cause():
    text = (
        "Graph break in user code at /p/s.py:14\nGraph Break Reason: Failed to handle graph break "
        "gracefully. Skipping the function and falling back to eager. Graph break encountered:\n\n"
        f"{BODY}{LINK}\n*** While handling this graph break, another graph break occurred: ***\n\n"
        "graph break in loop\n  Explanation: no.\n  Hint: maybe.\n\n  Developer debug context: "
        "frame skipped: loop (/p/s.py line 1)\n\n For more details about this graph break, please "
        f"visit: https://x.io/gb/gb7000.html\n{TRACE}"
    )
    found = parse_graph_break(text)
    assert found.frame_skipped
    assert (found.gb_id, found.gb_type) == ("GB0059", "Failed to trace builtin operator")
    assert len(found.hints) == 2
    assert "gb7000" in found.reason


def test_a_break_of_2_6_has_no_type_but_an_id_where_its_words_are_known():
    text = (
        "Graph break in user code at /p/s.py:14\nReason: Unsupported: Tensor.item\n"
        'User code traceback:\n  File "/p/s.py", line 14, in f\n    x.item()\n'
    )
    found = parse_graph_break(text)
    assert (found.gb_id, found.reason) == ("GB0124", "Unsupported: Tensor.item")
    assert found.stack[-1].code == "x.item()"


def test_a_duplicate_and_nonsense_are_read_as_far_as_they_go():
    head = "Graph break (user stack suppressed due to duplicate graph break) in user code at "
    found = parse_graph_break(f"{head}/p:1/s.py:14\nGraph Break Reason: {BODY}")
    assert (found.user_file, found.user_line, found.stack) == ("/p:1/s.py", 14, ())
    assert parse_graph_break("").reason == ""
    assert parse_graph_break("what\never").user_file is None
