"""Raw folders of processes that served, made by hand as the collector writes them."""

import json
from types import SimpleNamespace

from traceview.rollout import assess, read_served

WARM, USUAL = 0, 1
SETTINGS = {
    "suppress_errors": True, "error_on_recompile": False, "recompile_limit": 8,
    "fail_on_recompile_limit_hit": False,
}  # fmt: skip
HITS = {"fxgraph_cache_hit": 2, "fxgraph_cache_miss": 0, "fxgraph_cache_bypass": 0}


def way(number):
    stack = [{"file": "serve.py", "line": 20 + number, "function": "<module>"}]
    return {"event": "served_way", "t": 1.0, "way": number, "stack": stack}


def shape(number, length):
    tensors = [["ids", [1, length]], ["mask", [1, length]]]
    return {
        "event": "served_shape", "t": 1.0, "region_id": 0, "shape": number, "tensors": tensors
    }  # fmt: skip


def region(**more):
    return {"event": "region", "t": 1.0, "region_id": 0, "name": "Tower", "fullgraph": False} | more


def end(**more):
    return {
        "event": "served_end", "t": 2.0, "why": "end", "calls": 1, "stance": "default",
        "settings": SETTINGS, "counters": HITS, "graphs": 2, "limit_hits": [], "device": "cpu",
        "peak_bytes": 400 << 20,
    } | more  # fmt: skip


def served(calls, device=False):
    """``calls``: (length, ms, compiles, way) in order; every length is a shape."""
    lengths = list(dict.fromkeys(length for length, *_ in calls))
    rows = [
        [index, 1.0, ms, ms + 1 if device else None, compiles, lengths.index(length), by]
        for index, (length, ms, compiles, by) in enumerate(calls)
    ]
    batch = {"event": "served", "t": 1.5, "region_id": 0, "stance": "compiled", "rows": rows}
    shapes = [shape(number, length) for number, length in enumerate(lengths)]
    return [way(WARM), way(USUAL), *shapes, batch]


def safe(ms=1.0):
    """Two lengths, warmed up from another line, then 100 calls that compile nothing."""
    warm = [(32, 900.0, 1, WARM), (64, 800.0, 1, WARM)]
    return [*warm, *((32 if n % 4 else 64, ms * (1 + n % 10), 0, USUAL) for n in range(100))]


def write(raw, events):
    raw.mkdir(parents=True, exist_ok=True)
    head = {"event": "process", "t": 0.5, "pid": 7, "rank": None, "pass": "trials"}
    text = "".join(json.dumps(event) + "\n" for event in (head, *events))
    (raw / "events-7.jsonl").write_text(text)
    return raw


def outputs(outcome="agree", **more):
    bad = SimpleNamespace(run="compiled", same=False, output="output", max_abs_diff=0.01)
    checks = (bad,) if outcome == "differ" else ()
    return SimpleNamespace(region_id=0, name="Tower", outcome=outcome, checks=checks, **more)


AGREE = (outputs(),)


def assessed(folder, cold=None, warm=None, eager=None, compared=AGREE, **more):
    """The record; events of each process may be replaced."""
    usual = {
        "cold": [region(), *served(safe()), end()],
        "warm": [region(), *served(safe()), end()],
        "eager": [region(), *served(safe(2.0)), end(peak_bytes=390 << 20, graphs=0)],
    }
    given = {"cold": cold, "warm": warm, "eager": eager}
    recorded = {}
    for name, events in usual.items():
        raw = write(folder / name, events if given[name] is None else given[name])
        recorded[name] = read_served(raw, name, "exit")
    diagnosis = SimpleNamespace(
        outputs=compared, findings=(), environment={"device_name": "cpu"}, target="serve.py",
        created=None,
    )  # fmt: skip
    return assess(diagnosis, recorded, made_by="0", **more)
