"""Table ``break_sites``: where graphs break, and why.

``derive.facts.places`` decides which line is the user's own. A break that ``fullgraph=True`` turns
into an error is no row of ``graph_breaks``: the log has it as a compile that failed. Nor is one of
which only the compile's metrics tell, as the reason why analysis started again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from traceview.derive.facts.places import Location, Owners, frames, in_torch, region_of, source_text
from traceview.derive.facts.rows import Row, first_rank, rows
from traceview.tables import Tables, from_rows
from traceview.torchtext.frames import StackFrame, stack_json
from traceview.torchtext.graph_breaks import parse_graph_break

_HEAD = ("pass", "rank")
#: What two events of one line must share to need no second look.
_TEXT = (
    *("gb_id", "gb_type", "reason", "explanation", "context"),
    *("user_file", "user_line", "user_function", "user_stack", "refused"),
)
_CODE = ("co_filename", "co_firstlineno", "co_name", "stack")
#: What makes a site, besides torch's own words for what breaks …
_SITE = ("file", "line", "kinds", "refused", "in_torch")
_INSIDE = ("inside_file", "inside_line", "inside_function")
#: … and what else is seen of an event.
_LOOKED = ("function", *_INSIDE, "functions", "resume_functions", "user_code", "broken_code")

#: The exception that torch raises to the script where no graph break is allowed.
_ERROR = "Unsupported"

# torch's ids: torch/_dynamo/graph_break_registry.json. Releases without ids say it in words.
_ITEM = frozenset({"GB0124"})
#: A "data dependent operator" gives a tensor's value to Python …
VALUE_OPERATOR = "GB0033"
#: … for ``tolist`` or a NumPy scalar by this operator; others answer a question.
_SCALAR = "_local_scalar_dense"
_DATA_DEPENDENT = frozenset({"GB0170", "GB0035", "GB0034"})
_LOGGING = frozenset({"GB0291", "GB0296"})
_DYNAMIC_SHAPE = frozenset({"GB0036", "GB0037", "GB0246"})
_DISABLED = frozenset({"GB0098", "GB0099"})
_ASKED = frozenset({"GB0025"})
_BACKWARD = frozenset({"GB0123", "GB9186", "GB0442", "GB1042", "GB7054"})
#: That a frame has met its limit, or that a break could not be handled, causes no break.
_SECONDARY = frozenset({"GB0039", "GB0065", "GB0066", "GB7000"})
#: What torch says of a frame that it gives up begins so; the break itself has a record of its own.
_GIVEN_UP = "WON'T CONVERT "
#: Builtins that Dynamo cannot trace because they talk to the outside: GB0059 names them.
_IO = re.compile(
    r"builtin operator `?(print|open|input|breakpoint)\b|builtin: (print|open)\b"
    r"|\b(warnings\.warn|module: _warnings|logging|LoggingLogger|builtins\.(print|open|input)"
    r"|_io\.)"
)
#: In the type, up to torch 2.6 with the older name; of a wrapped module in the explanation.
_DISABLE = re.compile(r"torch\.compiler\.disable|torch\._dynamo\.disable\(\)")
_WRAPPED = "wrapped with `torch.compiler.disable`"
_OPTIMIZER = re.compile(r"qualname: (?:Optimizer|\w*(?:LR|Scheduler)\w*)\.|module: torch\.optim\b")
#: An operator in dots (``mylib.twist.default``) that is not torch's own.
_CUSTOM_OP = re.compile(r"unsupported operator: (?!aten\.|prims?\.)(\w+)\.(\w+)")
#: Why analysis starts again without a break: torch/_dynamo/exc.py has the classes of exceptions.
_NO_BREAK = re.compile(
    r"<class '|autograd\.grad consumed |source-less requires_grad_|Unknown fail_and_restart"
)
_STDLIB = re.compile(r"/lib(?:64)?/python[\d.]+t?/(?!(?:site|dist)-packages/)|^<frozen ")


def break_sites(tables: Tables) -> pl.DataFrame | None:
    """Table ``break_sites``, in the order of the log; None where breaks were not logged."""
    if not tables.has("graph_breaks"):
        return None
    restarts = from_rows("graph_breaks", _restarted(tables))
    logged = pl.concat([tables["graph_breaks"], restarts]).with_columns(refused=pl.lit(value=False))
    refused = from_rows("graph_breaks", _refused(tables)).with_columns(refused=pl.lit(value=True))
    code = tables["compiles"].select("compile_key", *_CODE).unique("compile_key", keep="first")
    events = pl.concat([logged, refused]).join(code, on="compile_key", how="left")
    events = events.with_row_index("order")

    # The same event stands in the log of every rank: it is looked at once.
    event = [*_TEXT, *_CODE]
    different = events.unique(event, keep="first", maintain_order=True)
    owners = Owners(tables)
    looked_at = from_rows("break_sites", (_site(owners, r) for r in different.to_dicts()))
    site = [name for name in _SITE if name != "refused"]
    looked_at = looked_at.select(*site, *_LOOKED).with_columns(pl.col("kinds").list.join(" "))
    known = events.join(
        different.select(event).hstack(looked_at), on=event, how="left", nulls_equal=True
    )

    # The structured log knows most, then a text log with hints.
    hinted = pl.col("hints").list.len().fill_null(0) > 0
    # torch's type of what breaks or, on torch without types, the first line of its reason.
    what = pl.coalesce("gb_type", pl.col("reason").str.split("\n").list.first(), pl.lit(""))
    known = known.with_columns(what=what).sort(
        pl.col("origin").eq_missing("structured"), hinted, descending=True, maintain_order=True
    )
    found = known.group_by(*_HEAD, *_SITE, "what", maintain_order=True).agg(
        pl.col("order").min(),
        pl.col("function", *_INSIDE, "raw_file", "raw_line").first(),
        pl.col("gb_type", "reason", "explanation", "hints", "context").first(),
        pl.col("gb_id", "user_code", "broken_code").drop_nulls().first(),
        pl.col("frame_skipped").any(),
        pl.col("user_line").is_not_null().any().alias("names_line"),
        # The same break stands in the structured log, in the text log and once per attempt.
        pl.max_horizontal(pl.col("compile_key").drop_nulls().n_unique(), 1).first().alias("times"),
        pl.len().alias("records"),
        pl.col("compile_key").drop_nulls().unique(maintain_order=True).alias("compile_keys"),
        pl.col("functions", "resume_functions").explode().drop_nulls().unique(maintain_order=True),
    )
    return found.sort("order").drop("order", "what").with_columns(pl.col("kinds").str.split(" "))


def _site(owners: Owners, row: Row) -> Row:
    """Whose line the event of ``row`` is, of what kind, and which functions it is about."""
    spot = owners.spot(row)
    if spot.place is None and row["co_filename"] is not None:
        spot = owners.code(row)
    place, inside = spot.place, spot.inside
    return {
        "file": place and place.file,
        "line": place and place.line,
        "function": place and place.function,
        "inside_file": inside and inside.file,
        "inside_line": inside and inside.line,
        "inside_function": inside and inside.function,
        "in_torch": owners.is_torchs(row),
        "kinds": _kinds(row),
        "functions": sorted(owners.about_compiles(row)),
        "resume_functions": sorted(owners.behind(row)),
        "user_code": source_text(row, spot.place) if spot.place else None,
        "broken_code": source_text(row),
    }


def _kinds(row: Row) -> list[str]:
    """What kinds of break it is (schema/facts.py lists them); ``other`` where it is no known one.

    torch's own code asks for breaks too: the user did not ask for those.
    """
    gb_id, what, context = row["gb_id"], row["gb_type"] or "", row["context"] or ""
    explanation = row["explanation"] or ""
    stack = frames(row["user_stack"])
    file = stack[-1].file if stack else ""
    value = gb_id == VALUE_OPERATOR
    reads = value and _SCALAR in f"{what} {context}"
    torchs = in_torch(Location(file, 1))
    # DDP and its like break around each forward, whatever the user compiles; contextlib for them.
    parallel = "/torch/nn/parallel/" in file or "/torch/distributed/" in file
    wrapper = parallel or ("module: torch." in context and _STDLIB.search(file) is not None)
    asked = gb_id in _ASKED
    disabled = gb_id in _DISABLED or bool(_DISABLE.search(what)) or _WRAPPED in explanation
    found = {
        "item": reads or (not value and (gb_id in _ITEM or "Tensor.item" in what)),
        "data_dependent": (value and not reads)
        or (not value and (gb_id in _DATA_DEPENDENT or what.startswith("Data-dependent"))),
        "io": gb_id in _LOGGING or bool(_IO.search(f"{what} {explanation} {context}")),
        "dynamic_shape": gb_id in _DYNAMIC_SHAPE or "dynamic shape operator" in what.lower(),
        "asked": asked and not (torchs or wrapper),
        "disabled": disabled and not (asked or torchs or wrapper),
        "backward": gb_id in _BACKWARD or "Tensor.backward" in what,
        "optimizer": "/torch/optim/" in file or bool(_OPTIMIZER.search(context)),
        "custom_op": unknown_operator(row) is not None,
        "wrapper": wrapper,
        "secondary": gb_id in _SECONDARY or what.startswith(_GIVEN_UP),
    }
    return [kind for kind, is_one in found.items() if is_one] or ["other"]


def unknown_operator(row: Row) -> tuple[str, str] | None:
    """(namespace, name) of an operator not of torch's own that has no fake implementation."""
    found = _CUSTOM_OP.search(row["context"] or "") or _CUSTOM_OP.search(row["reason"] or "")
    return (found[1], found[2]) if found else None


def errors_suppressed(tables: Tables) -> bool:
    """Whether torch goes on in eager after an error in the compiler without raising it."""
    switches = (
        row["name"] in ("suppress_errors", "TORCHDYNAMO_SUPPRESS_ERRORS")
        and row["value"] in ("True", "1")
        for row in rows(tables, "environment")
    )
    return any(switches) or bool(rows(tables, "warnings", kind="suppressed_failure"))


def refused_compiles(tables: Tables) -> list[Row]:
    """Compiles of the first rank that failed since ``fullgraph=True`` allows no graph break."""
    failed = first_rank(rows(tables, "compiles", outcome="failed", fail_type=_ERROR))
    if not failed or errors_suppressed(tables):
        return []
    if break_ended(tables):
        return failed
    regions = ((row, region_of(tables, row["compile_key"])) for row in failed)
    return [row for row, region in regions if region and region["fullgraph"]]


def break_ended(tables: Tables) -> bool:
    """Whether a graph break that ``fullgraph=True`` makes an error ended the script."""
    return any(row["error_type"] == _ERROR for row in first_rank(rows(tables, "runs")))


def _said(row: Row, text: str) -> Row:
    """What a text says of a graph break in the compile of ``row``, as ``graph_breaks`` has it."""
    said = parse_graph_break(text)
    return {
        **{name: row[name] for name in ("pass", "rank", "compile_key", "compile_id")},
        "gb_id": said.gb_id,
        "gb_type": said.gb_type,
        "reason": said.reason,
        "explanation": said.explanation,
        "hints": list(said.hints),
        "context": said.context,
        "frame_skipped": False,
    }


def _restarted(tables: Tables) -> Iterator[Row]:
    """Breaks that only the compile's metrics hold, as torch of before October 2024 writes them."""
    known = set(tables["graph_breaks"]["compile_key"])
    for row in rows(tables, "compiles"):
        for reason in row["restart_reasons"] or ():
            if row["compile_key"] not in known and not _NO_BREAK.match(reason):
                yield _said(row, reason)


def _refused(tables: Tables) -> Iterator[Row]:
    """They as rows of table ``graph_breaks``."""
    for row in refused_compiles(tables):
        text = row["fail_reason"] or ""
        file, line = row["fail_user_file"], row["fail_user_line"]
        quoted = re.search(rf"\bline {line}, in \w+, code: (.+)", text)
        code = quoted[1].strip() if quoted else None
        known = file is not None and line is not None
        stack = (StackFrame(file, line, row["co_name"], code),)
        yield {
            **_said(row, text),
            "user_file": file,
            "user_line": line,
            "user_function": row["co_name"],
            "user_stack": stack_json(stack) if known else None,
        }
