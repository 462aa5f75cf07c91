"""A step of both stances as small tables: accounting, kernels in their groups, graphs."""

from traceview.derive.effects import effect_tables
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None}
FILE = "/job/train.py"


def kernel(group, stance, name, ms, category="elementwise", count=1.0, **more):
    return {
        **HEAD, "group_id": group, "stance": stance, "name": name, "category": category,
        "ms": ms, "count": count, "clock": "device", **more,
    }  # fmt: skip


def account(stance, category, ms, kind="busy", profiled_ms=None, clock="device"):
    return {
        **HEAD, "stance": stance, "category": category, "kind": kind, "ms": ms, "clock": clock,
        "profiled_ms": ms if profiled_ms is None else profiled_ms,
    }  # fmt: skip


def graph(kind, text, compile_id="0/0"):
    return {
        "pass": "cold", "compile_key": f"cold:1:0:{compile_id}", "compile_id": compile_id,
        "kind": kind, "text": text,
    }  # fmt: skip


def effects(kernels, idle=(), groups=(), graphs=(), counts=(), timed=None):
    """(effect → its row, rows of all effects) of a step; the accounting is that of ``kernels``.

    ``timed``: (eager ms, compiled ms) where that is not the sum of the accounting.
    """
    busy = {}
    for row in kernels:
        key = (row["stance"], row["category"])
        busy[key] = busy.get(key, 0.0) + row["ms"]
    accounts = [account(*key, ms) for key, ms in busy.items()] + list(idle)
    sums = [
        sum(row["ms"] for row in accounts if row["stance"] == stance)
        for stance in ("eager", "compiled")
    ]
    eager_ms, compiled_ms = timed or sums
    return derived(accounts, eager_ms, compiled_ms, kernels, groups, graphs, counts)


def derived(accounts, eager_ms, compiled_ms, kernels=(), groups=(), graphs=(), counts=()):
    speedup = {**HEAD, "clock": "device", "eager_ms": eager_ms, "compiled_ms": compiled_ms}
    tables = Tables({
        "speedups": from_rows("speedups", [speedup]),
        "accounting": from_rows("accounting", accounts),
        "matched_kernels": from_rows("matched_kernels", kernels),
        "match_groups": from_rows("match_groups", [{**HEAD, **row} for row in groups]),
        "graphs": from_rows("graphs", graphs),
        "step_counts": from_rows("step_counts", [{**HEAD, **row} for row in counts]),
    })  # fmt: skip
    found = effect_tables(tables)
    if not found:
        return {}, []
    by_name = {row["effect"]: row for row in found["waterfall"].iter_rows(named=True)}
    return by_name, found["waterfall_rows"].to_dicts()
