"""
## What it finds
An error inside the compiler that reaches the script: code that runs in eager and that Dynamo or a
backend cannot compile, because of a bug of theirs.

## Why it costs
The call raises where eager would have gone on. Without a handler the script ends there.

## Evidence
The exception that ended the script while it ran compiled, or that made a compile fail and that the
script caught: `InductorError`, `BackendCompilerFailed`, `InternalTorchDynamoError` (for the last,
the log has the Python exception in Dynamo's own code). Not reported if the script fails in the same
way all in eager, or if the machine lacks what compiling needs: that is `cap-toolchain-missing`. An
operator without a fake implementation is a cause of its own; this is then its symptom. The line is
the user's innermost one that torch was tracing, where it says so.

## What to do
Keep the one function or line out of the graph, so that the rest stays compiled. Then make a small
example for a report to PyTorch: torch writes one itself (`TORCHDYNAMO_REPRO_AFTER`). If the backend
is the script's own, fix that.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_dynamo/exc.py, `BackendCompilerFailed`, `InternalTorchDynamoError`
- torch/_inductor/exc.py, `InductorError`
- torch/_dynamo/config.py, `repro_after`
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator

import polars as pl

from traceview.derive.facts.breaks import errors_suppressed
from traceview.derive.facts.places import source_text
from traceview.rules import _failures, _recompiles
from traceview.rules.cap_toolchain_missing import is_lack
from traceview.rules.finding import THE_END
from traceview.rules.kit import (
    Cost,
    Finding,
    Owners,
    Row,
    Snippet,
    Spot,
    Tables,
    about,
    first_rank,
    region_of,
    rows,
    shorten,
)
from traceview.tables import grouped
from traceview.torchtext.frames import TRACED, parse_traceback, user_columns

CODE = "TV117"
NEEDS = frozenset({"runs", "compiles"})
SEVERITIES = ("error", "warning")
FOLLOWS = frozenset({"cap-bad-args", "cap-customop-no-autograd", "cap-customop-no-fake"})

_CRASHES = frozenset({"InductorError", "BackendCompilerFailed", "InternalTorchDynamoError"})
#: Python's exceptions that Dynamo passes on as they are: torch/_dynamo/convert_frame.py. All others
#: from tracing it raises as an InternalTorchDynamoError.
_PASSED_ON = frozenset({"AssertionError", "IndexError"})
_REPRO = "TORCHDYNAMO_REPRO_AFTER={after} TORCHDYNAMO_REPRO_LEVEL=2 python {script}"
_LEAVE_OUT = "@torch.compiler.disable\ndef {name}(...):"
_APART = "@torch.compiler.disable\ndef apart(...):\n    ...  # {code}"
_NAMED = re.compile(r"\w+")

_TORCHS_FAULT = "This is an error in torch's compiler, not in the script"
_REMEDY = (
    "Keep the {what} out of the graph until this is fixed; the rest stays compiled. The command "
    "makes torch write a small example of the failure, for a report to github.com/pytorch/pytorch."
)
_OWN_FAULT = "This is an error in the backend that the script gives torch.compile"
_OWN_REMEDY = "Fix that backend, or remove backend=: Inductor is the default."


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per function whose compile crashed."""
    baseline = tables["runs"].filter(pl.col("pass") == "baseline")
    raised = set(baseline["error_type"])
    own = tables.once(_failures.own_error)
    if errors_suppressed(tables) or raised & _CRASHES or own:
        return
    lived = (baseline["exit_code"] == 0).any()
    ended = [row for row in first_rank(rows(tables, "runs")) if row["error_type"] in _CRASHES]
    failed = (
        row
        for row in first_rank(rows(tables, "compiles", outcome="failed"))
        if _kind(row) and row["fail_type"] not in raised and not is_lack(row["fail_reason"])
    )
    for compiles in grouped(failed, "co_filename", "co_firstlineno").values():
        first = compiles[0]
        kind, owners = _kind(first), tables.once(Owners)
        fatal = next((row for row in ended if row["error_type"] == kind), None)
        spot, code = _traced(owners, first, (fatal or {}).get("error_message") or "")
        # Raised by a backend that is a callable of the script's own.
        region = region_of(tables, first["compile_key"])
        theirs = kind == "BackendCompilerFailed" and bool(region and region["backend_is_callable"])

        named = _NAMED.search(first["co_name"] or "")
        after = "dynamo" if kind == "InternalTorchDynamoError" else "aot"
        script = next((row["error_file"] for row in ended if row["error_file"]), None) or "SCRIPT"
        repro = _REPRO.format(after=after, script=script.rpartition("/")[2])
        leave_out = _LEAVE_OUT.format(name=named[0] if named else "NAME") + "\n    ..."
        if code:
            leave_out = _APART.format(code=code)
        way = ("backend=inductor",) if theirs else (f"eager={region['name']}",) if region else ()
        remedy = _REMEDY.format(what="line" if code else "function")
        yield Finding(
            code=CODE,
            rule="cap-compile-crash",
            severity="error" if fatal else "warning",
            title=(
                f"The compiler fails on {_recompiles.called(first)}: {kind}, "
                f"{shorten(first['fail_reason'] or '', 120)}"
            ),
            explanation=(
                f"{_OWN_FAULT if theirs else _TORCHS_FAULT}: it happened while the function was "
                f"compiled{', and in eager the script goes on' if lived else ''}."
            ),
            cost=THE_END if fatal else Cost(about="the function is not compiled"),
            confidence="measured",
            location=spot.place,
            inside=spot.inside,
            about=about(*compiles),
            evidence=(
                *(
                    _failures.error(row, shorten(row["error_message"] or "", 200))
                    for row in ended[:1]
                ),
                *map(_failures.failed_compile, compiles[:2]),
            ),
            what_to_do=_OWN_REMEDY if theirs else remedy,
            remedy=way if fatal else (),
            snippet=None if theirs else Snippet("python", f"{leave_out}\n\n# {repro}"),
        )


def _traced(owners: Owners, compiled: Row, message: str) -> tuple[Spot, str | None]:
    """The line that was being traced and its text, as torch's message quotes it; else the code."""
    row = {**compiled, **user_columns(parse_traceback(message.partition(TRACED)[2]))}
    spot = owners.spot(row)
    code = source_text(row, spot.place) if spot.place else None
    return spot if code else owners.code(compiled), code


def _kind(row: Row) -> str | None:
    """The crash that a failed compile raised; None: it was no crash."""
    kind = row["fail_type"]
    own = getattr(builtins, kind or "", None)  # what Dynamo's own code ran into
    if isinstance(own, type) and issubclass(own, Exception) and kind not in _PASSED_ON:
        return "InternalTorchDynamoError"
    return kind if kind in _CRASHES else None
