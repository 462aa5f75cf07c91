"""The user's own text at the lines that call torch.compile."""

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
