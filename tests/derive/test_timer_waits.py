"""Which clocks are surely read without waiting for a GPU."""

import textwrap

import pytest

from traceview.derive.user_timers import script_timers, timers
from traceview.tables import Tables, from_rows

HEAD = "import time\nimport torch\nfrom triton.testing import do_bench\n"


def look(body):
    """(waits, calls) of every clock around the line marked CALL."""
    source = HEAD + textwrap.dedent(body)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "CALL" in text)
    return [(timer.waits, timer.calls) for timer in timers(source, line)]


QUEUED = {
    "one call": ("t = time.time()\ny = f(x)  # CALL\nprint(time.time() - t)\n", 1),
    "a loop": ("""
        t = time.perf_counter()
        for _ in range(100):
            y = model(x)  # CALL
        seconds = time.perf_counter() - t
        print(y.mean().item())
        """, 100),
    "loops in loops": ("""
        t = time.perf_counter()
        for _ in range(10):
            for k in range(2, 8, 2):
                y = model(batches[k])  # CALL
        ms = 1e3 * (time.perf_counter() - t)
        """, 30),
    "a function with rounds": ("""
        def bench(fn, x, rounds):
            for _ in range(3):
                fn(x)
            t0 = time.perf_counter()
            with torch.no_grad():
                for _ in range(rounds):
                    fn(x)  # CALL
            return (time.perf_counter() - t0) / rounds
        """, None),
    "training": ("""
        class Trainer:
            def epoch(self):
                t0 = time.monotonic()
                for _ in range(50):
                    loss = self.step_fn(self.x).mean()  # CALL
                    loss.backward()
                    self.optimizer.step()
                    self.optimizer.zero_grad(set_to_none=True)
                t1 = time.monotonic()
                return t1 - t0
        """, 50),
    "an index that wraps around": ("""
        def run(net, batches, meter, n):
            for i in range(n):
                t = time.perf_counter()
                y = net(batches[i % len(batches)])  # CALL
                meter.add(time.perf_counter() - t)
                total += y.sum()
        """, None),
    "a clock in a loop": ("""
        times = []
        for _ in range(20):
            t = time.time()
            f(x)  # CALL
            times.append(time.time() - t)
        """, 20),
}  # fmt: skip


@pytest.mark.parametrize("name", QUEUED)
def test_nothing_waits(name):
    body, calls = QUEUED[name]
    assert look(body) == [(False, calls)]


LOOP = "t = time.time()\nfor _ in range(9):\n    {}\n{}print(time.time() - t)\n"
UNKNOWN = {
    "synchronised": LOOP.format("f(x)  # CALL", "torch.cuda.synchronize()\n"),
    "synchronised by an own function": LOOP.format("f(x)  # CALL", "done()\n"),
    "a value is read": LOOP.format("total += f(x).item()  # CALL", ""),
    "a value is asked for": LOOP.format("y = float(f(x))  # CALL", ""),
    "a tensor decides": LOOP.format("f(x)  # CALL\n    if y > 3:\n        break", ""),
    "a comparison": LOOP.format("best = f(x) < best  # CALL", ""),
    "a text": LOOP.format('note = f"{f(x)}"  # CALL', ""),
    "a list": "t = time.time()\nys = [f(x) for _ in range(9)]  # CALL\nprint(time.time() - t)\n",
    "a loader": LOOP.replace("range(9)", "loader").format("f(x)  # CALL", ""),
    "a while": "t = time.time()\nwhile run:\n    f(x)  # CALL\nprint(time.time() - t)\n",
    "a library that times": "t = time.time()\ndo_bench(f)  # CALL\nprint(time.time() - t)\n",
    "a module that times": "t = time.time()\ntorch.run(f)  # CALL\nprint(time.time() - t)\n",
    "read after the value": LOOP.format("y = f(x)  # CALL", "").replace(
        "print(", "print(y.item(), "
    ),
    "another context": "t = time.time()\nwith timed():\n    f(x)  # CALL\nprint(time.time() - t)\n",
    "readings in two blocks": """
        with torch.no_grad():
            t = time.time()
            f(x)  # CALL
        print(time.time() - t)
        """,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_in_doubt_nothing_is_said(name):
    assert look(UNKNOWN[name]) == [(None, None)]


def test_later_calls_are_found_in_the_lines_window():
    source = (
        "import time\nf(x)\nt = time.time()\nfor _ in range(9):\n    f(x)\nd = time.time() - t\n"
    )
    region = {"pass": "cold", "region_id": 0, "first_call_stack": '[{"file": "b.py", "line": 2}]'}
    call = {"pass": "cold", "stance": "compiled", "name": "traceview call 0", "file": "b.py"}
    rows = [call | {"line": 5}, call | {"line": 5}, call | {"line": 5, "stance": "eager"}]
    made = {"regions": [region], "line_ops": rows}
    tables = Tables({name: from_rows(name, found) for name, found in made.items()})
    (timer,) = script_timers(tables, {"b.py": source}.get).to_dicts()
    assert (timer["start_line"], timer["read_line"], timer["call_line"]) == (3, 6, 5)
    assert (timer["waits"], timer["calls"], timer["spans_first_call"]) == (False, 9, False)
