"""The user's own text at the lines that call torch.compile."""

import json

from traceview.derive.user_sources import LINE_CHARACTERS, source_lines
from traceview.tables import Tables, from_rows

TEXT = "import torch\n\n    model = torch.compile(net)  \n" + "x" * (LINE_CHARACTERS + 1)


def lines(*places):
    rows = [{"pass": "cold", "call_file": file, "call_line": line} for file, line in places]
    tables = Tables({"regions": from_rows("regions", rows)})
    return source_lines(tables, {"/u/a.py": TEXT}.get).select("file", "line", "text").rows()


def test_a_line_of_the_runs_copy_once():
    expected = [("/u/a.py", 3, "    model = torch.compile(net)")]
    assert lines(("/u/a.py", 3), ("/u/a.py", 3), ("/u/b.py", 1), (None, None)) == expected


def test_no_line_where_there_is_none_to_show():
    assert lines(("/u/a.py", 0), ("/u/a.py", 2), ("/u/a.py", 4), ("/u/a.py", 99)) == []


def test_loops_that_run_a_line_again_and_again():
    text = "for a in f():\n    [g(b) for b in a]\n    def h():\n        g(a)\nelse:\n    g(0)\n"
    stack = [{"file": "/u/a.py", "line": line, "function": "f"} for line in (1, 2, 4)]
    rows = [{"pass": "cold", "first_call_stack": json.dumps(stack)}]
    tables = Tables({"regions": from_rows("regions", rows)})
    assert source_lines(tables, {"/u/a.py": text}.get)["loops"].to_list() == [0, 2, 0]
