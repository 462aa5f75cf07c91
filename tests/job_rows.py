"""Hand-made logs of a job: compiles, look-ups and settings of several ranks, as tables."""

from facts import with_facts

from traceview.tables import Tables, from_rows

S = 1_000_000  # µs
#: When the first compile of a hand-made job begins.
ZERO = 1_700_000_000 * S
CODE = {"co_filename": "/u/net.py", "co_firstlineno": 7, "co_name": "forward"}


def key(rank, id_="0/0"):
    return f"part{rank}:1:0:{id_}"


def compiled(rank, start, seconds, id_="0/0", **more):
    """One compile, all of it tracing unless ``more`` says otherwise; pids are as in containers."""
    return {
        "rank": rank, "pid": 1, "compile_key": key(rank, id_), "compile_id": id_,
        "frame_compile_id": int(id_.partition("/")[2]), "is_forward": True, "outcome": "ok",
        "started_us": ZERO + float(start * S),
        "duration_us": None if seconds is None else float(seconds * S), **CODE, **more,
    }  # fmt: skip


def looked(rank, event, key_="k", id_="0/0", line=10, **more):
    """One look-up in Inductor's graph cache."""
    return {
        "rank": rank, "compile_key": key(rank, id_), "compile_id": id_, "cache": "fx_graph",
        "event": event, "key": key_, "raw_file": f"{rank}.log", "raw_line": line, **more,
    }  # fmt: skip


def component(rank, name, value, line=10, digest=None, **more):
    """One component of the key of the look-up at that line."""
    return {
        "rank": rank, "pid": 1, "compile_key": key(rank), "cache": "fx_graph", "name": name,
        "value": value, "digest": digest or f"digest of {value}", "raw_file": f"{rank}.log",
        "raw_line": line, **more,
    }  # fmt: skip


def job(**rows_by_table):
    """Tables of one attempt; a row's ``pass`` may name another one."""
    frames = {
        name: from_rows(name, [{"pass": "logs", **row} for row in rows])
        for name, rows in rows_by_table.items()
    }
    return with_facts(Tables(frames))
