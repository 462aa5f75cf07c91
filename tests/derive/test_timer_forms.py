"""A script's own timer in every form: what holds the compile, and what reads without a wait.

The line that led to the first call carries ``# CALL``.
"""

import json
from textwrap import dedent

import pytest

from traceview.derive.user_timers import script_timers
from traceview.tables import Tables, from_rows

HEAD = "import time\nimport timeit\nimport torch\nfrom contextlib import contextmanager\n"
GENERATOR = """
@contextmanager
def timer(name):
    t0 = time.perf_counter()
    yield
    {}print(name, time.perf_counter() - t0)
"""
CLASS = """
class Timer:
    def __enter__(self):
        self.start = time.perf_counter()
        return self
    def __exit__(self, *error):
        {}self.seconds = time.perf_counter() - self.start
"""
HELPER = """
def bench(name, fn, x):
    for _ in range(3):
        fn(x)  # CALL
    t0 = time.perf_counter()
    for _ in range(50):
        fn(x)
    {}t1 = time.perf_counter()
    torch.cuda.synchronize()
    print(name, t1 - t0)
"""
SYNC = "torch.cuda.synchronize()\n    "
#: The source → (clock, holds the first call, several calls, waits, calls).
FORMS = {
    "a helper that waits after it read the clock": (
        HELPER.format(""),
        [("time.perf_counter", False, True, False, 50)],
    ),
    "a helper that waits before": (
        HELPER.format(SYNC),
        [("time.perf_counter", False, True, None, None)],
    ),
    "a decorator": (
        """
        def timed(run):
            def wrapper(*args):
                t0 = time.time()
                out = run(*args)  # CALL
                print(time.time() - t0)
                return out
            return wrapper
        """,
        [("time.time", True, False, False, 1)],
    ),
    "a generator as context manager": (
        GENERATOR.format("")
        + "\nwith timer('x'):\n    for _ in range(20):\n        f(x)  # CALL\n",
        [("time.perf_counter", True, True, False, 20)],
    ),
    "a generator that waits": (
        GENERATOR.format(SYNC) + "\nwith timer('x'):\n    f(x)  # CALL\n",
        [("time.perf_counter", True, False, None, None)],
    ),
    "a class as context manager": (
        CLASS.format("") + "\nwith Timer() as t:\n    for _ in range(20):\n        f(x)  # CALL\n",
        [("time.perf_counter", True, True, False, 20)],
    ),
    "a class that waits": (
        CLASS.format("torch.cuda.synchronize(); ") + "\nwith Timer():\n    f(x)  # CALL\n",
        [("time.perf_counter", True, False, None, None)],
    ),
    "a block that waits": (
        CLASS.format("") + "\nwith Timer():\n    f(x)  # CALL\n    torch.cuda.synchronize()\n",
        [("time.perf_counter", True, False, None, None)],
    ),
    "timeit": (
        "timeit.timeit(lambda: f(x), number=100)  # CALL",
        [("timeit.timeit", True, True, False, 100)],
    ),
    "timeit of a value": (
        "timeit.timeit(lambda: f(x).item(), number=100)  # CALL",
        [("timeit.timeit", True, True, None, 100)],
    ),
    "timeit of a call and a wait": (
        "timeit.timeit(lambda: (f(x), torch.cuda.synchronize()), number=100)  # CALL",
        [("timeit.timeit", True, True, None, 100)],
    ),
    "timeit of an own function": (
        "def run():\n    f(x).cpu()\ntimeit.timeit(run, number=100)  # CALL",
        [("timeit.timeit", True, True, None, 100)],
    ),
    "pytest-benchmark": (
        "def test_f(benchmark):\n    benchmark(f, x)  # CALL",
        [("pytest-benchmark", False, True, False, None)],
    ),
    "pytest-benchmark without a warm-up": (
        "def test_f(benchmark):\n    benchmark.pedantic(f, args=(x,), rounds=20)  # CALL",
        [("pytest-benchmark", True, True, False, 20)],
    ),
    "pytest-benchmark with one": (
        "def test_f(benchmark):\n    benchmark.pedantic(f, warmup_rounds=2, rounds=9)  # CALL",
        [("pytest-benchmark", False, True, False, 9)],
    ),
    "an own function called benchmark": ("benchmark(f, x)  # CALL", []),
    "torch.utils.benchmark": (
        "torch.utils.benchmark.Timer('f(x)', globals=globals()).blocked_autorange()  # CALL",
        [],
    ),
    "do_bench": ("triton.testing.do_bench(lambda: f(x))  # CALL", []),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_timer_holds(form):
    body, expected = FORMS[form]
    source = HEAD + dedent(body)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "# CALL" in text)
    within = [text.split()[1] for text in source.splitlines()[:line] if text.lstrip()[:4] == "def "]
    inner = source.splitlines()[line - 1][:1] == " " and "with" not in source
    function = within[-1].partition("(")[0] if inner else "<module>"
    stack = json.dumps([{"file": "b.py", "line": line, "function": function}])
    region = {"pass": "cold", "region_id": 0, "first_call_stack": stack}
    made = script_timers(Tables({"regions": from_rows("regions", [region])}), {"b.py": source}.get)
    columns = ("clock", "spans_first_call", "calls_in_loop", "waits", "calls")
    assert made.select(columns).rows() == expected
