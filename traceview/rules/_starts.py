"""What rules about compile time share: seconds of a start, and the settings that decide them."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import polars as pl

from traceview.json_errors import NOT_JSON
from traceview.rules.kit import (
    Location,
    Row,
    Severity,
    Tables,
    compile_call,
    first,
    first_rank,
    frame,
    rows,
    speedup,
)

_GPP, _LOADING = "compile_file", "PyCodeCache.load_by_key_path"
_HASHING = "inductor_codecache_torch_key"
#: For trials of what AOTAutograd's cache does not look at: switches of torch's, and, as it seems,
#: before torch 2.13 which tensors are marked as static.
NO_AUTOGRAD_CACHE = "torch._functorch.config.enable_autograd_cache=False"
#: A quarter of a job whose length is known is worth a warning.
WARNING_SHARE = 0.25


def severity(tables: Tables, seconds: float) -> Severity:
    """Warning where a start's seconds are a large part of the job; information where its length is
    not known: a minute does not matter to a job of hours.
    """
    job = job_seconds(tables)
    return "warning" if job is not None and seconds >= WARNING_SHARE * job else "info"


def job_seconds(tables: Tables) -> float | None:
    """Length of the whole job, compiling included; None where its steps are not known."""
    found = speedup(tables)
    if found is None or not found["job_steps"] or found["compiled_ms"] is None:
        return None
    return float(found["job_steps"] * found["compiled_ms"] / 1e3 + (found["compile_s"] or 0.0))


def backend_seconds(compiles: Collection[Row]) -> float:
    """Seconds of these compiles in AOTAutograd and Inductor, whose work caches keep.

    Dynamo traces again at every start.
    """
    spent = 0.0
    for row in first_rank(list(compiles)):
        whole = row["aot_us"] if row["is_forward"] is not False else row["duration_us"]
        spent += max(whole or 0.0, row["inductor_us"] or row["codegen_us"] or 0.0)
    return spent / 1e6


def autograd_seconds(compiles: Collection[Row]) -> float:
    """Seconds of these compiles in AOTAutograd alone."""
    inside = sum(row["inductor_us"] or row["codegen_us"] or 0.0 for row in first_rank([*compiles]))
    return backend_seconds(compiles) - inside / 1e6


def once_seconds(tables: Tables, keys: Collection[str]) -> float:
    """Of these compiles, what only the first one with an empty cache folder does.

    It hashes torch's own files, looks at the processor and compiles headers, for all that follow.
    """
    wanted = pl.col("compile_key").is_in(list(keys))
    phases = first_rank(frame(tables, "compile_phases").filter(wanted).to_dicts())
    names = {row["phase_id"]: row["name"] for row in phases}
    spent = 0.0
    for row in phases:
        parent = names.get(row["parent_id"])
        headers = row["name"] == _GPP and parent is not None and parent != _LOADING
        if headers or row["name"] == _HASHING:
            spent += row["duration_us"] or 0.0
    return spent / 1e6


def is_kernel(name: str, parent: str | None) -> bool:
    """Whether a phase compiles a kernel of the graph, which g++ does as that code is loaded."""
    return name.startswith("triton: ") or (name == _GPP and parent == _LOADING)


def of_keys(tables: Tables, keys: Collection[str]) -> list[Row]:
    """The compiles with these keys, forward and backward, of the pass that rules look at."""
    return [row for row in rows(tables, "compiles") if row["compile_key"] in keys]


def eager_steps(tables: Tables) -> int:
    """Steps that traceview itself ran in eager: they could not compile."""
    blocks = first_rank(rows(tables, "blocks", stance="eager"))
    timed = sum((row["steps"] or 0) + (row["skipped_steps"] or 0) for row in blocks)
    windows = first_rank(rows(tables, "profile_windows", stance="eager"))
    return timed + sum(row["steps"] or 0 for row in windows)


def setting_line(tables: Tables, *names: str) -> Location | None:
    """The first line of the user's that names the setting, or the first of these that has one."""
    for name in names:
        found = first_rank(rows(tables, "setting_sites", name=name))
        if found and found[0]["line"] is not None:
            return Location(found[0]["file"], found[0]["line"], found[0]["function"])
    return None


def setting_place(tables: Tables, *names: str) -> Location | None:
    """``setting_line``, else the torch.compile call that is measured."""
    anchor = first(tables, "regions", is_anchor=True)
    return setting_line(tables, *names) or compile_call(anchor)


def options(region: Row) -> dict[str, Any]:
    """``options=`` of a torch.compile call; none where it has none, or they are no such thing."""
    try:
        found = json.loads(region["options"] or "{}")
    except NOT_JSON:
        return {}
    return found if isinstance(found, dict) else {}
