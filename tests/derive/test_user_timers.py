"""Whether a script's own clock holds the first compiled call, read from its source.

In each source the line that led to the first call carries ``# CALL``.
"""

import json
from textwrap import dedent

import pytest

from traceview.derive.user_timers import script_timers, timers
from traceview.tables import Tables, from_rows

IMPORTS = "import time\nimport timeit\nimport torch\n"


def look(body, function="<module>", imports=IMPORTS):
    source = imports + dedent(body)
    (line,) = [n for n, text in enumerate(source.split("\n"), 1) if "# CALL" in text]
    return [(t.clock, t.calls_in_loop) for t in timers(source, line, function)]


HOLDING = {
    "loop between the readings": (
        """
        t0 = time.perf_counter()
        for _ in range(100):
            f(x)  # CALL
        print("compiled", (time.perf_counter() - t0) / 100)
        """,
        ("time.perf_counter", True),
    ),
    "one call, the end in a variable": (
        """
        start = time.time()
        f(x)  # CALL
        end = time.time()
        print(f"took {end - start:.3f}")
        """,
        ("time.time", False),
    ),
    "each call timed into a list": (
        """
        times = []
        for _ in range(10):
            t0 = time.monotonic()
            y = f(x)  # CALL
            times.append(time.monotonic() - t0)
        """,
        ("time.monotonic", False),
    ),
    "nanosecond clock": (
        """
        t0 = time.perf_counter_ns()
        f(x)  # CALL
        ns = time.perf_counter_ns() - t0
        """,
        ("time.perf_counter_ns", False),
    ),
    "iteration time as nanoGPT takes it": (
        """
        t0 = time.time()
        while True:
            loss = step(batch)  # CALL
            t1 = time.time()
            dt = t1 - t0
            t0 = t1
            if dt > 100:
                break
        """,
        ("time.time", False),
    ),
    "logged every hundred iterations": (
        """
        t0 = time.time()
        for i in range(1000):
            step(batch)  # CALL
            if i % 100 == 0:
                print(time.time() - t0)
                t0 = time.time()
        """,
        ("time.time", True),
    ),
    "events": (
        """
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            f(x)  # CALL
        end.record()
        torch.cuda.synchronize()
        print(start.elapsed_time(end) / 20)
        """,
        ("torch.cuda.Event", True),
    ),
    "events in lists": (
        """
        for i in range(20):
            starts[i].record()
            f(x)  # CALL
            ends[i].record()
        ms = [starts[i].elapsed_time(ends[i]) for i in range(20)]
        """,
        ("torch.cuda.Event", False),
    ),
    "timeit": (
        """
        print(timeit.timeit(lambda: f(x), number=100))  # CALL
        """,
        ("timeit.timeit", True),
    ),
    "an epoch": (
        """
        for epoch in range(3):
            began = time.time()
            for batch in loader:
                step(batch)  # CALL
            print(f"epoch {epoch}: {time.time() - began:.1f} s")
        """,
        ("time.time", True),
    ),
    "an attribute holds the start": (
        """
        self.t0 = time.process_time()
        f(x)  # CALL
        self.total += time.process_time() - self.t0
        """,
        ("time.process_time", False),
    ),
    "a call over several lines, inside with": (
        """
        t0 = time.perf_counter()
        with torch.no_grad():
            out = f(
                x,  # CALL
                y,
            )
        torch.cuda.synchronize()
        took = time.perf_counter() - t0
        """,
        ("time.perf_counter", False),
    ),
}

FREE = {
    "warmed up before": """
        for _ in range(3):
            f(x)  # CALL
        t0 = time.perf_counter()
        for _ in range(100):
            f(x)
        print(time.perf_counter() - t0)
        """,
    "started in the tenth iteration": """
        for i in range(100):
            if i == 10:
                t0 = time.time()
            f(x)  # CALL
        print(time.time() - t0)
        """,
    "started again in the tenth iteration": """
        t0 = time.time()
        for i in range(100):
            if i == 10:
                t0 = time.time()
            f(x)  # CALL
        print(time.time() - t0)
        """,
    "started again after the first call": """
        t0 = time.time()
        f(x)  # CALL
        t0 = time.time()
        f(x)
        print(time.time() - t0)
        """,
    "read before the call": """
        t0 = time.time()
        build()
        print("built in", time.time() - t0)
        f(x)  # CALL
        """,
    "a clock that nobody reads again": """
        seed = time.time()
        f(x)  # CALL
        """,
    "the clock of another branch": """
        t0 = time.time()
        if compiled:
            f(x)  # CALL
        else:
            g(x)
            print(time.time() - t0)
        """,
    "a difference that is no time": """
        a = load()
        f(x)  # CALL
        print(b - a)
        """,
    "the clock of a nested function": """
        def report():
            t0 = time.time()
            return time.time() - t0
        f(x)  # CALL
        """,
    "a time limit": """
        t0 = time.time()
        while time.time() - t0 < 10:
            f(x)  # CALL
        """,
    "another module's time": """
        t0 = clock.time()
        f(x)  # CALL
        print(clock.time() - t0)
        """,
}


@pytest.mark.parametrize("name", HOLDING)
def test_the_figure_holds_the_first_call(name):
    body, expected = HOLDING[name]
    assert look(body) == [expected]


@pytest.mark.parametrize("name", FREE)
def test_the_figure_is_free_of_the_first_call(name):
    assert look(FREE[name]) == []


def test_imports_under_other_names():
    body = "\nt = now()\nf(x)  # CALL\nd = now() - t\n"
    assert look(body, imports="from time import perf_counter as now\n") == [
        ("time.perf_counter", False)
    ]
    assert look(body, imports="from elsewhere import now\n") == []


def test_a_function_is_looked_at_by_itself():
    body = """
    def bench(f, x):
        t0 = time.time()
        for _ in range(9):
            f(x)  # CALL
        return time.time() - t0
    """
    assert look(body, "bench") == [("time.time", True)]


@pytest.mark.parametrize("source", ["def (", "\0", "x" * 1_000_001, "(" * 500, ""])
def test_a_source_that_is_no_python_has_no_timers(source):
    assert timers(source, 1) == []


def table(sources, stack):
    region = {"pass": "cold", "pid": 1, "region_id": 0, "first_call_stack": stack}
    made = Tables({"regions": from_rows("regions", [region])})
    return script_timers(made, sources.get).to_dicts()


def test_a_loop_further_in_counts_for_a_clock_further_out():
    train = "def train():\n    for b in range(9):\n        step(b)\n"
    main = (
        "import time\nfrom train import train\nt0 = time.time()\ntrain()\nprint(time.time() - t0)\n"
    )
    stack = [
        {"file": "main.py", "line": 4, "function": "<module>"},
        {"file": "train.py", "line": 3, "function": "train"},
    ]
    (row,) = table({"main.py": main, "train.py": train}, json.dumps(stack))
    assert (row["file"], row["start_line"], row["read_line"], row["call_line"]) == (
        "main.py",
        3,
        5,
        4,
    )
    assert row["calls_in_loop"]
    assert row["spans_first_call"]
    assert row["function"] == "<module>"


@pytest.mark.parametrize("stack", [None, "", "{", "[]", "3", '[{"file": 3, "line": "x"}, null]'])
def test_stacks_that_say_nothing(stack):
    assert table({}, stack) == []


def test_a_file_without_a_copy_is_passed_over():
    assert table({}, '[{"file": "/etc/passwd", "line": 1, "function": "f"}]') == []


def test_a_warning_about_the_source_stays_with_the_source():
    assert look(r"""
t0 = time.time()
f("\d")  # CALL
print(time.time() - t0)
""") == [("time.time", False)]


ABSURD = {
    "a long name": "a" + ".b" * 5000 + " = time.time()",
    "many clocks": "\n".join(f"t{n} = time.time()" for n in range(999)),
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_sources_end_soon(name):
    assert look(ABSURD[name] + "\nf(x)  # CALL\nprint(time.time() - t0)\n") == []


@pytest.mark.parametrize(
    ("body", "goes_on"),
    [
        (
            """
            t0 = time.time()
            for i in range(100):
                f(x)  # CALL
                if i % 10 == 9:
                    print(i / (time.time() - t0))
            """,
            True,
        ),
        (
            """
            t0 = time.time()
            for i in range(100):
                f(x)  # CALL
            print(time.time() - t0)
            """,
            False,
        ),
        (
            """
            for size in sizes:
                t0 = time.time()
                for i in range(100):
                    f(x)  # CALL
                print(size, time.time() - t0)
            """,
            False,
        ),
    ],
)
def test_a_clock_that_is_read_as_the_loop_goes_on(body, goes_on):
    source = IMPORTS + dedent(body)
    (line,) = [n for n, text in enumerate(source.split("\n"), 1) if "# CALL" in text]
    assert [timer.read_in_loop for timer in timers(source, line, "<module>")] == [goes_on]


ROUNDS = """
for round, batch in enumerate(batches):
    {before}
    t0 = time.time()
    for i in range(100):
        {call}  # CALL
    print(round, (time.time() - t0) / 100)
"""


@pytest.mark.parametrize(
    ("before", "call", "again"),
    [
        ("x = batch.cuda()", "f(x)", True),
        ("x = batch.cuda()", "self.net.forward(x)", True),
        ("f = torch.compile(nets[round])", "f(batch)", False),
        ("pass", "batch.model(x)", False),
    ],
)
def test_a_clock_that_starts_again_in_every_round(before, call, again):
    source = IMPORTS + ROUNDS.format(before=before, call=call)
    (line,) = [n for n, text in enumerate(source.split("\n"), 1) if "# CALL" in text]
    assert [timer.starts_again for timer in timers(source, line, "<module>")] == [again]
    alone = IMPORTS + "t0 = time.time()\nf(x)  # CALL\nprint(time.time() - t0)"
    assert [timer.starts_again for timer in timers(alone, 5, "<module>")] == [False]


LOOP = "t0 = time.time()\nfor i in range(100):\n    f(x)  # CALL\n"


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        ("print(f'{n} rounds in {time.time() - t0:.1f} s')", True),
        ("took = time.time() - t0\nlog.info('took %.1f min', took / 60)", True),
        ("print('%.1f s' % (time.time() - t0))", True),
        ("print(round((time.time() - t0) * 1e3), 'ms')", True),
        ("t1 = time.time()\nprint(t1 - t0)", True),
        ("print((time.time() - t0) / 100)", False),
        ("print(n / (time.time() - t0))", False),
        ("took = time.time() - t0\nprint(took, took / n)", False),
        ("results.append(time.time() - t0)", False),
        ("took = time.time() - t0", False),
        ("best = min(best, time.time() - t0)\nprint(best)", False),
        ("a = b = time.time() - t0\nprint(a)", False),
    ],
)
def test_a_time_that_is_only_printed(after, shown):
    source = IMPORTS + LOOP + after
    (line,) = [n for n, text in enumerate(source.split("\n"), 1) if "# CALL" in text]
    assert [timer.shown_whole for timer in timers(source, line, "<module>")] == [shown]


def test_a_time_that_is_returned_is_a_figure():
    source = IMPORTS + "def took():\n" + "".join(f"    {x}\n" for x in LOOP.splitlines())
    source += "    return time.time() - t0\n"
    assert [timer.shown_whole for timer in timers(source, 7, "took")] == [False]
