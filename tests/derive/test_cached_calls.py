"""Calls of functions with a cache that Dynamo warned about."""

from traceview.derive.user_sources import cached_calls
from traceview.tables import Tables, from_rows

SOURCE = """from functools import cache, lru_cache
import torch

@lru_cache(maxsize=4)
def weights(n):
    return torch.ones(n)

def plain(n):
    return weights(n) + 1

def smooth(x):
    return x * weights(len(x)) + plain(2)
"""
WARNING = "Dynamo detected a call to a `functools.lru_cache`-wrapped function at '{}:{}'. Dynamo …"


def found(file, line, **sources):
    given = {
        "warnings": [{"pass": "cold", "message": WARNING.format(file, line)}],
        "sources": [{"pass": "cold", "file": f"/u/{name}.py"} for name in sources],
    }
    tables = Tables({name: from_rows(name, rows) for name, rows in given.items()})
    texts = {f"/u/{name}.py": text for name, text in sources.items()}
    columns = ("file", "line", "function", "in_file", "first_line", "last_line")
    return list(cached_calls(tables, texts.get).select(columns).iter_rows())


def test_the_function_that_the_line_calls():
    known = [("/u/a.py", 12, "weights", "/u/a.py", 5, 6)]
    assert found("a.py", 12, a=SOURCE) == known


def test_a_function_of_another_file():
    other = SOURCE.replace("def weights", "def other")
    caller = "import a\n\ndef f(x):\n    return x * a.other(3)\n"
    assert found("b.py", 4, a=other, b=caller) == [("/u/b.py", 4, "other", "/u/a.py", 5, 6)]


def test_a_call_whose_function_is_not_the_users():
    assert found("a.py", 9, a="import lib\n" * 9) == [("/u/a.py", 9, None, None, None, None)]
    assert found("elsewhere.py", 9, a=SOURCE) == []
