"""Table ``recompile_causes``: for each recompile the guard that decided it, and what changed.

Of the guards that failed, torch names the first one of every variant that it tried, the variant
used last in front.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from traceview.derive.facts.places import region_of
from traceview.tables import Tables, grouped
from traceview.torchtext.frames import written_name

Row = Mapping[str, Any]
Frame = tuple[str | None, int | None]

#: torch's switch for symbolic sizes after a change (torch/_dynamo/config.py).
DYNAMIC_SWITCH = "automatic_dynamic_shapes"
A_TENSOR, _A_TENSOR_TYPE, _NONE = "a tensor", "a tensor type", "<class 'NoneType'>"
#: torch's state, and what a tensor has of it: inference mode shows as a tensor's dispatch keys.
_STATES = ("global_state", "dispatch_keys")
SIZES = ("size", "shape_guard")
#: torch's function around a torch.nn module or a method of an optimizer.
_WRAPPER = "torch/_dynamo/external_utils.py"
_FAMILIES = {
    "size": "size",
    "shape_guard": "size",
    "module_int": "module_int",
    "value": "constant",
    "type_id": "identity",
    "length": "length",
    "keys": "length",
    "dtype": "tensor",
    "stride": "tensor",
    "rank": "tensor",
    "device": "tensor",
    "requires_grad": "tensor",
    "alias": "tensor",
    "global_state": "state",
    "backend": "backend",
}
#: What Dynamo calls a value that was on Python's stack at a graph break.
_ON_STACK = re.compile(r"___stack\d+")
#: torch prints the class of an enum's member like any other (``type.__repr__``). Of the objects of
#: users' own classes only enums' members are guarded by identity (variables/builder.py), and the
#: classes themselves, which are new ones where a function makes them: ``<locals>``.
_ENUM = re.compile(r"type=<(?:enum|flag|class) '(?!torch\.|numpy\.)(?!.*<locals>)[\w.]+\.\w+'>")
_CONSTANT = re.compile(r"type=<class '(?:NoneType|bool|int|float|str|ellipsis)'>")
#: What is asked of a set, or all of it as Python writes it; a dict has a colon after a key.
_OF_SET = re.compile(
    r"\bset\.__contains__\(| == (?:(?:frozenset|set)\(|\{(?:'[^']*'|\"[^\"]*\"|[^'\":{}]+)[,}])"
)
_KEY_SET = re.compile(r"DispatchKeySet\((.*)\)")
#: Keys that a tensor gains or loses with the mode it is met in, and not by what it is. (Autocast:
#: in torch 2.6, whose guard on the global state, torch/csrc/dynamo/guards.cpp, leaves it out.)
_MODE_KEY = re.compile(r"ADInplaceOrView|Auto(?:grad|cast)\w*|FuncTorch\w*|Batched\w*")
#: What torch appends to a guard on a parameter (torch/csrc/dynamo/guards.cpp).
_ON_PARAMETER = "force_parameter_static_shapes"
_PARAMETER = re.compile(r"check_tensor\(.*?, (?:\w+\.)*Parameter, .*?size=\[(?P<size>[\d, ]*)\]")
#: The guard that keeps sizes of 0 and 1 out of a symbolic graph.
_FROM_TWO = re.compile(r"2 <= \S+\.size\(\)\[\d+\]")
_LOCAL = re.compile(r"\bL\['(\w+)'\]")
_CODE = ("co_name", "co_filename", "co_firstlineno")


def recompile_causes(tables: Tables) -> pl.DataFrame | None:
    """One row per recompile, in the order of the log; None where no log of recompiles was kept."""
    if not tables.has("recompiles"):
        return None
    found = _deciding(tables["recompiles"])
    # A text log, or a second attempt, repeats what the structured log has.
    compile_ = pl.coalesce("compile_key", "compile_id", pl.int_range(pl.len()).cast(pl.String))
    found = found.with_columns(compile=compile_).with_row_index("number")
    found = found.sort(pl.col("origin").ne_missing("structured"), maintain_order=True)
    same = ("pass", "rank", "compile", "co_firstlineno")
    found = found.unique(same, keep="first", maintain_order=True)
    found = found.sort("number").drop("number", "compile")
    # A tensor was expected and None came, or the reverse: the value changed, not only the type.
    left_out = (
        (pl.col("kind") == "type_id") & (pl.col("old") == _A_TENSOR_TYPE) & (pl.col("new") == _NONE)
    )
    found = found.with_columns(
        pl.when(left_out).then(pl.lit(text)).otherwise(column).alias(column)
        for column, text in (("kind", "value"), ("old", A_TENSOR), ("new", "None"))
    )
    cause = ("pass", "co_filename", "co_firstlineno", "kind", "source_name")
    causes = found.select(cause).unique(maintain_order=True)
    causes = causes.with_columns(cause_id=pl.int_range(pl.len()).over("pass"))
    found = found.join(causes, on=cause, how="left", nulls_equal=True, maintain_order="left")

    named = found.select("kind", "source_name", "guard", "old", "new").iter_rows()
    families = [_family(*values) for values in named]
    of_sizes = found.filter(pl.Series(families, dtype=pl.String) == "size")
    reasons = _size_reasons(tables, of_sizes.to_dicts())
    sizes = [next(reasons) if family == "size" else (None, None) for family in families]
    return found.with_columns(
        function=pl.Series([written_name(name) for name in found["co_name"]], dtype=pl.String),
        is_wrapper=pl.col("co_filename").str.ends_with(_WRAPPER).fill_null(False),
        family=pl.Series(families, dtype=pl.String),
        size_reason=pl.Series([reason for reason, _ in sizes], dtype=pl.String),
        parameters=pl.Series([names or None for _, names in sizes], dtype=pl.List(pl.String)),
    )


def _deciding(recompiles: pl.DataFrame) -> pl.DataFrame:
    """For each recompile the failed guard that decided it: that of the variant used last.

    torch's state is checked before all else, so a variant that failed another guard was compiled
    for the state of this call: state was not what had changed. Of a tensor, too, the variant that
    came furthest decides: the one of as many dimensions.
    """
    kind, source = pl.col("kind").fill_null(""), pl.col("source_name")
    numbered = recompiles.with_columns(
        recompile=(pl.col("order").fill_null(0) == 0).cum_sum(), number=pl.int_range(pl.len())
    )
    first_kind = kind.first().over("recompile")
    same_source = source.eq_missing(source.first().over("recompile"))
    size = (first_kind == "rank") & kind.is_in(SIZES) & same_source
    value = first_kind.is_in(_STATES) & ~kind.is_in((*_STATES, "other"))
    tensor = first_kind.is_in(_STATES) & (kind == "dispatch_keys")
    choice = pl.when(size | value).then(0).when(tensor).then(1).otherwise(2)
    ranked = numbered.with_columns(choice=choice).sort("recompile", "choice", "number")
    chosen = ranked.unique("recompile", keep="first", maintain_order=True)
    return chosen.drop("recompile", "number", "choice", "order")


def _family(
    kind: str | None, source: str | None, guard: str | None, old: str | None, new: str | None
) -> str:
    """What kind of thing changed."""
    source, guard = source or "", guard or ""
    if kind in ("value", "obj_id") and source.endswith(".training"):
        return "state"
    if kind == "value" and _ON_STACK.search(source):
        return "resumed"
    if kind in ("keys", "value") and is_of_members(guard):
        return "length"
    if kind == "obj_id":
        return "constant" if _ENUM.search(guard) or _CONSTANT.search(guard) else "identity"
    if kind == "dispatch_keys":
        changed = keys_changed(old, new)
        return "state" if changed and all(map(_MODE_KEY.fullmatch, changed)) else "tensor"
    return _FAMILIES.get(kind or "", "other")


def is_of_members(guard: str) -> bool:
    """Whether a guard is on what a set holds: all of it, or that one thing is in it."""
    return _OF_SET.search(guard) is not None


def keys_changed(old: str | None, new: str | None) -> frozenset[str]:
    """Dispatch keys that only one of the expected and the met tensor has."""
    before, after = (
        frozenset(match[1].split(", "))
        if (match := _KEY_SET.fullmatch(text or ""))
        else frozenset()
        for text in (old, new)
    )
    return before ^ after


def pins(tables: Tables, row: Row) -> list[Row]:
    """Where the size was set to one value, in the code that did not serve it or the new code."""
    pinned = tables.once(_pinned)
    keys = (f"{_process(row)}:{row['failed_compile_id']}", row["compile_key"])
    size = f"{row['source_name']}.size()[{row['dim']}]"
    found = (pin for key in keys for pin in pinned.get(key, ()))
    return [pin for pin in found if size in _LOCAL.sub(r"\1", pin["source_name"] or "")]


def _pinned(tables: Tables) -> dict[str, list[Row]]:
    """Symbolic sizes that were set to one value, by compile."""
    specialized = tables["symbols"].filter(event="specialize")
    return grouped(specialized.iter_rows(named=True), "compile_key")


def _size_reasons(tables: Tables, rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Why the compiled code did not serve each of these sizes, and the parameters it goes with.

    The size is 0 or 1; it goes with a parameter's, which is never symbolic; symbolic sizes are
    switched off; compiled code decided on it; or it changed for the first time, and torch makes
    it symbolic.
    """
    met = Counter(
        _dimension(row) for row in rows if row["kind"] == "size" and not _is_zero_one(row)
    )
    switched_off = set(tables["environment"].filter(name=DYNAMIC_SWITCH, value="False")["pass"])
    differing = _differing_parameters(tables, rows)
    for row in rows:
        parameters = list(differing.get((row["pass"], *frame_of(row)), ()))
        if _ON_PARAMETER in (row["guard"] or ""):
            parameters.append(row["source_name"] or "")
        region = region_of(tables, row["compile_key"])
        static = row["pass"] in switched_off or (region and region["dynamic"] == "False")
        if _is_zero_one(row):
            yield "zero_one", []
        elif row["kind"] == "size" and parameters:
            yield "parameter", parameters
        elif row["kind"] == "size" and static:
            yield "static", []
        elif row["kind"] == "shape_guard" or met[_dimension(row)] > 1 or pins(tables, row):
            yield "pinned", []
        else:
            yield "first_change", []


def _is_zero_one(row: Row) -> bool:
    """Whether what came has a size of 0 or 1, which torch always compiles separately."""
    if row["kind"] == "shape_guard":
        return _FROM_TWO.match(row["guard"] or "") is not None
    return row["new"] in ("0", "1")


def _differing_parameters(
    tables: Tables, rows: list[dict[str, Any]]
) -> dict[tuple[object, ...], list[str]]:
    """By pass and function the parameters that two of its variants guard with different sizes."""
    if not rows:
        return {}
    frames = {(row["pass"], *frame_of(row)) for row in rows}
    compiles = tables["compiles"].select("compile_key", "pass", *_CODE[1:]).iter_rows()
    code = {key: tuple(frame) for key, *frame in compiles if tuple(frame) in frames}
    guards = tables["guards"].filter(
        pl.col("kind") == "TENSOR_MATCH",
        pl.col("compile_key").is_in(list(code)),
        pl.col("guard").str.contains("Parameter, ", literal=True),
    )
    sizes: dict[tuple[object, ...], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for key, source, guard in guards.select("compile_key", "source_name", "guard").iter_rows():
        if match := _PARAMETER.search(guard):
            sizes[code[key]][source].add(match["size"])
    return {
        frame: [source for source, met in by_source.items() if len(met) > 1]
        for frame, by_source in sizes.items()
    }


def _dimension(row: Row) -> tuple[object, ...]:
    """The size of one tensor in one function, between resets of one process (hosts share pids)."""
    return row["rank"], _process(row), *frame_of(row), row["source_name"], row["dim"]


def _process(row: Row) -> str:
    """The process of a recompile, and how often it had been reset."""
    return str(row["compile_key"] or "").rpartition(":")[0]


def frame_of(row: Row) -> Frame:
    """The code object of a row of ``compiles`` or ``recompile_causes``."""
    return row["co_filename"], row["co_firstlineno"]
