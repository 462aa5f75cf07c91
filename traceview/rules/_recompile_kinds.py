"""Whose a recompile is: the guard that decided it is of one family, and a family of one rule.

The rules about recompiles divide them by ``family``, so that no recompile is named by two of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from traceview.rules import _costs, _recompiles, _starts
from traceview.rules._recompiles import Cause, Frame, limited_frames
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Severity
from traceview.tables import Tables
from traceview.torchtext.frames import resumed
from traceview.words.numbers import milliseconds

Family = Literal[
    "size", "module_int", "constant", "resumed", "identity", "length", "tensor", "state",
    "backend", "other",
]  # fmt: skip

#: The second recompile of one function shows that it goes on; one makes two variants, once.
FEWEST_RECOMPILES = 2
#: Less than a second in all is noticed by nobody.
DEAR_SECONDS = 1.0

_FAMILIES: dict[str, Family] = {
    "size": "size", "shape_guard": "size",
    "module_int": "module_int",
    "value": "constant",
    "type_id": "identity",
    "length": "length", "keys": "length",
    "dtype": "tensor", "stride": "tensor", "rank": "tensor", "device": "tensor",
    "requires_grad": "tensor", "alias": "tensor",
    "global_state": "state",
    "backend": "backend",
}  # fmt: skip

_CONSTANT = re.compile(r"type=<class '(?:NoneType|bool|int|float|str|ellipsis)'>")
#: What is asked of a set, or all of it as Python writes it; a dict has a colon behind a key.
_OF_SET = re.compile(
    r"\bset\.__contains__\(| == (?:(?:frozenset|set)\(|\{(?:'[^']*'|\"[^\"]*\"|[^'\":{}]+)[,}])"
)
_KEY_SET = re.compile(r"DispatchKeySet\((.*)\)")
#: Keys that a tensor gains or loses with the mode it is met in, and not by what it is. (Autocast:
#: in torch 2.6, whose guard on the global state, torch/csrc/dynamo/guards.cpp, leaves it out.)
_MODE_KEY = re.compile(r"ADInplaceOrView|Auto(?:grad|cast)\w*|FuncTorch\w*|Batched\w*")


def family(row: Row) -> Family:
    """What kind of thing changed, of a row of ``recompiles``."""
    kind, source = row["kind"], row["source_name"] or ""
    if kind in ("value", "obj_id") and source.endswith(".training"):
        return "state"
    if kind == "value" and _recompiles.on_stack(source):
        return "resumed"
    if is_of_members(row):
        return "length"
    if kind == "obj_id":
        constant = _recompiles.is_member(row["guard"]) or _CONSTANT.search(row["guard"] or "")
        return "constant" if constant else "identity"
    if kind == "dispatch_keys":
        changed = keys_changed(row)
        return "state" if changed and all(map(_MODE_KEY.fullmatch, changed)) else "tensor"
    return _FAMILIES.get(kind, "other")


def is_of_members(row: Row) -> bool:
    """Whether the guard is on what a set holds: all of it, or that one thing is in it."""
    return row["kind"] in ("keys", "value") and _OF_SET.search(row["guard"] or "") is not None


def keys_changed(row: Row) -> frozenset[str]:
    """Dispatch keys that only one of the expected and the met tensor has."""
    old, new = (_keys(row[column]) for column in ("old", "new"))
    return old ^ new


def causes(tables: Tables, wanted: Family) -> Iterator[Cause]:
    """One cause a function and subject, of the recompiles of one family.

    A state flips for all compiled functions below a region at once: there it is one a region.
    """
    regions = _regions(tables) if wanted == "state" else {}
    whole = tables.once(_whole_functions)
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in _recompiles.deciding(tables):
        if family(row) == wanted:
            rest = resumed(row["co_name"])
            written = whole.get((row["co_filename"], rest.function)) if rest else None
            function = written or _recompiles.frame_of(row)
            owner = regions.get(function, function)
            found.setdefault((owner, _subject(wanted, row)), []).append(row)
    return (Cause(tuple(group)) for group in found.values())


def recompiles(cause: Cause) -> int:
    """How often one function was compiled again: the most of any code object, on one rank."""
    keys: dict[tuple[object, ...], set[str]] = {}
    for row in first_rank(list(cause.rows)):
        code = (*_recompiles.frame_of(row), row["co_name"])
        keys.setdefault(code, set()).add(row["compile_key"])
    return max(len(found) for found in keys.values())


def evidence(tables: Tables, cause: Cause) -> tuple[Evidence, ...]:
    """The guards that failed, and what finding one of several variants takes where profiled."""
    looked_up = [
        row
        for row in first_rank(rows(tables, "call_path", part="cache_lookup"))
        if (row["entries"] or 0) > 1 and row["calls"] and row["ms"]
    ]
    if not looked_up:
        return cause.evidence()
    frame = _recompiles.frame_of(cause.row)
    ids = {
        row["compile_id"] for row in rows(tables, "compiles") if _recompiles.frame_of(row) == frame
    }
    found = [row for row in looked_up if row["compile_id"] in ids]
    if not found:
        return cause.evidence()
    calls = sum(row["calls"] for row in found)
    each = sum(row["ms"] for row in found) / calls
    variants = max(row["entries"] for row in found)
    text = f"finding one of {variants} variants takes {milliseconds(each)} a call, as profiled"
    return (*cause.evidence(), Evidence(text, "call_path"))


def severity(tables: Tables, cause: Cause, cost: Cost, fewest_recompiles: float = 0) -> Severity:
    """By its seconds; a function that met the recompile limit runs in eager, which costs more.

    One more variant is information: it is compiled once, whatever alternates.
    """
    if recompiles(cause) < fewest_recompiles:
        return "info"
    met_limit = {_recompiles.frame_of(row) for row in cause.rows} & limited_frames(tables)
    return "warning" if met_limit else severity_of(tables, cost.seconds)


def severity_of(tables: Tables, seconds: float | None) -> Severity:
    """Warning where seconds of compiling again are much, or where they are not known; else info."""
    job = _starts.job_seconds(tables) or 0.0
    dear = seconds is None or seconds >= max(DEAR_SECONDS, _costs.DEAR_SHARE * job)
    return "warning" if dear else "info"


def _subject(of: Family, row: Row) -> str | None:
    """What makes recompiles one cause: of tensors the property, whichever shows it first."""
    if of in ("state", "backend"):
        return None
    if of == "tensor":
        return str(row["kind"])
    return (row["source_name"] or "").removesuffix(".__code__")


def _whole_functions(tables: Tables) -> dict[tuple[str | None, str | None], Frame | None]:
    """(file, name) → the one code object of that name: what the rest of a function is named after.

    None where several have it.
    """
    found: dict[tuple[str | None, str | None], Frame | None] = {}
    for row in rows(tables, "compiles"):
        key, own = (row["co_filename"], row["co_name"]), _recompiles.frame_of(row)
        found[key] = own if found.get(key, own) == own else None
    return found


def _regions(tables: Tables) -> dict[Frame, int]:
    """Code object → the region that it was first compiled in."""
    found: dict[Frame, int] = {}
    code = {row["compile_key"]: _recompiles.frame_of(row) for row in rows(tables, "compiles")}
    for row in tables["compile_regions"].iter_rows(named=True):
        if row["compile_key"] in code:
            found.setdefault(code[row["compile_key"]], row["region_id"])
    return found


def _keys(text: str | None) -> frozenset[str]:
    match = _KEY_SET.fullmatch(text or "")
    return frozenset(match[1].split(", ")) if match else frozenset()
