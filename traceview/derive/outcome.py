"""The outcome of a run in one word, and the reason in one sentence where it is no measured one.

``helped`` and ``hurt`` need the whole 95 % interval beyond 3 %; all else that was measured is
``neutral``. What gains between compiles that come back again and again hurts if these take more. A
target that failed on its own is ``failed``, whatever was measured until then. Where nothing runs
compiled there is nothing to compare, unless trying to compile slows the steps down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from traceview.derive.figures import ENOUGH_PAIRS, Figures
from traceview.derive.processes import Row, fails_in_eager, lives_in_eager, of_process
from traceview.tables import Tables
from traceview.words.names import signal_name

HELPED_ABOVE = 1.03
HURT_BELOW = 0.97
#: Ends that came from outside, in the middle of anything.
CUT_SHORT = frozenset({"interrupted", "timeout", "signal", "killed", "unknown"})
#: Calls of copies that say that the script works with these.
LEAST_COPY_CALLS = 3
#: Calls of copies for each call of the compiled module that say the same.
LEAST_OFTEN = 0.5
#: The one way of not being compiled that may cost each step: Dynamo may look again and again.
LEFT_IN_EAGER = "Dynamo looked at the code and compiled no graph, so all of it runs in eager"

#: torch/_dynamo/utils.py, ``get_fake_value``: the error that an operator raised while traced.
_QUOTED = re.compile(r"got \w+\(['\"](.+?)['\"]\)(?=\s|$)")
#: Behind these words torch appends what fills a page.
_TOO_LONG = re.compile(r" Stack trace:|, known options are \[")

Outcome = tuple[str, str | None]


def outcome(tables: Tables, run: Row, measured: Figures) -> Outcome:
    """(outcome, reason) of the process of ``run``; the reason is None for a measured outcome."""
    failure = _failure(run, measured)
    if failure:
        # What the all-eager pass, if there was one, says about whose failure it is.
        if same := fails_in_eager(tables, run):
            own = (_failure(same, measured) or failure).removeprefix("the script ")
            failure = f"the script fails without torch.compile as well: {own}"
        elif lives_in_eager(tables, run):
            failure += " (all in eager it does not fail)"
        return "failed", failure
    high = measured.speedup_high
    unused = _not_compiled(tables, run)
    if unused:
        slower = unused == LEFT_IN_EAGER and high is not None and high < HURT_BELOW
        return "hurt" if slower else "not_compiled", unused
    word = measured_outcome(measured)
    return (word, None) if word else ("not_measured", _not_measured(tables, run, measured))


def measured_outcome(measured: Figures) -> str | None:
    """helped, hurt or neutral by the interval; None where there is none."""
    low, high = measured.speedup_low, measured.speedup_high
    if low is None or high is None:
        return None
    if low > HELPED_ABOVE:
        return "hurt" if (measured.whole_ratio or 1.0) < HURT_BELOW else "helped"
    return "hurt" if high < HURT_BELOW else "neutral"


def _failure(run: Row, measured: Figures) -> str | None:
    """What happened, if the target ended in a failure of its own."""
    kind, code = run["exit_kind"], run["exit_code"]
    if kind in ("stopped", "interrupted"):
        return None
    if kind == "timeout":
        late = "the time limit ended the script before both sides were measured"
        return late if measured.speedup is None else None
    if run["error_type"] not in (None, "SystemExit") and not (kind == "exit" and code == 0):
        known = run["error_file"] is not None and run["error_line"] is not None
        where = f" at {run['error_file']}:{run['error_line']}" if known else ""
        # torch raises ``Unsupported`` to the user only where a graph break is not allowed.
        strict = run["error_type"] == "Unsupported"
        why = "; fullgraph=True makes this graph break an error" if strict else ""
        text = (run["error_message"] or "").strip()
        if text:
            # torch's own headline is too general without the error that it quotes.
            quoted = _QUOTED.search(text)
            cause = f" ({quoted[1].partition('. ')[0][:200]})" if quoted else ""
            headline = _TOO_LONG.split(text.splitlines()[0])[0].rstrip(".")
            text = f": {headline if len(headline) <= 200 else headline[:199] + '…'}{cause}"
        return f"the script raised {run['error_type']}{where}{text}{why}"
    if kind in ("signal", "killed"):
        number = run["exit_signal"]
        by = "" if number is None else f" by {signal_name(number)}"
        return f"the script was killed{by}"
    if kind == "exit" and code:
        return f"the script ended with exit code {code}"
    return None


def _not_compiled(tables: Tables, run: Row) -> str | None:
    """Why nothing ran compiled, if nothing did; None where that was not recorded."""
    if run["dynamo_disabled"]:
        return "compiling is switched off (TORCH_COMPILE_DISABLE or torch._dynamo.config.disable)"
    if run["user_stance"] == "force_eager":
        return "the script itself sets the stance force_eager"
    if not tables.has("regions"):
        return None
    regions = of_process(tables["regions"], run)
    # What would come is not known of a script that was ended from outside before a second call;
    # the first one may still have been compiling then.
    if run["exit_kind"] in CUT_SHORT and regions["calls"].fill_null(0).sum() <= 1:
        return None
    if regions.is_empty():
        seen = of_process(tables["compile_intervals"], run).height or _elsewhere(tables, run)
        asked = of_process(tables["compile_targets"], run)["asked"].drop_nulls()
        own = "" if asked.is_empty() else f", and --compile {asked[0]} compiled nothing"
        return None if seen else f"the script never calls torch.compile{own}"
    if regions["disable"].fill_null(False).all():
        return "every torch.compile call passes disable=True"
    if (regions["calls"].fill_null(0) == 0).all():
        if regions["error"].is_not_null().all():
            raised = str(regions["error"][0]).partition(": ")[0]
            return f"torch.compile raised {raised}, and the script went on in eager"
        methods = sorted(set(regions["methods_used"].explode().drop_nulls()))
        if not methods:
            return "what torch.compile gave back was never called"
        used = ", ".join(f".{name}()" for name in methods[:3])
        return (
            f"the compiled module was used only through {used}, which torch.compile left in eager"
        )
    copies = of_process(tables["module_copies"], run).iter_rows(named=True)
    copied = {row["region_id"] for row in copies if replaces_module(row)}
    if copied.issuperset(regions.filter(pl.col("calls") > 0)["region_id"]):
        return "the script calls copies of what it compiled in place, and these are not compiled"
    compiles = of_process(tables["compiles"], run)
    watched = tables.has("compile_intervals")
    if watched and compiles.is_empty() and not of_process(tables["compile_intervals"], run).height:
        return "compiled callables were called, but Dynamo compiled nothing"
    left = compiles["outcome"].is_in(["skipped", "failed", "limit", "empty"])
    return LEFT_IN_EAGER if compiles.height and left.all() else None


def replaces_module(row: Mapping[str, Any]) -> bool:
    """Whether these copies (of ``module_copies``) are called, and the compiled module no longer."""
    often = max(LEAST_COPY_CALLS, row["region_calls_before"])
    return bool(row["region_calls_after"] == 0 and row["calls"] >= often)


def calls_copies(row: Mapping[str, Any]) -> bool:
    """Whether these copies are called instead of the compiled module, or often next to it."""
    after = row["region_calls_after"]
    also = after > 0 and row["calls"] >= max(LEAST_COPY_CALLS, LEAST_OFTEN * after)
    return also or replaces_module(row)


def _elsewhere(tables: Tables, run: Row) -> bool:
    """Whether processes compiled that are not collected in, such as workers of the script's."""
    collected = tables["runs"]["pid"].implode()
    others = pl.col("pid").is_not_null() & ~pl.col("pid").is_in(collected)
    return tables["compiles"].filter((pl.col("pass") == run["pass"]) & others).height > 0


def _not_measured(tables: Tables, run: Row, measured: Figures) -> str:
    if run["exit_kind"] == "interrupted":
        return "the run was interrupted before enough was measured"
    if run["never_quiet"] and not measured.pairs_used:
        return "the script compiled again and again until the plan gave up waiting"
    if measured.pairs_used:
        were = "was" if measured.pairs_used == 1 else "were"
        return (
            f"{ENOUGH_PAIRS} usable block pairs are needed, {measured.pairs_used} {were} measured; "
            "let the script take more steps, or allow more blocks (--blocks)"
        )
    if measured.pairs_measured:
        return f"none of the block pairs measured ({measured.pairs_measured}) was usable"
    if measured.compiled_ms is not None and measured.eager_ms is None:
        known = tables["notes"].filter(pl.col("what") == "eager steps")["why"].to_list()
        return known[0] if known else "eager steps were not measured"
    if not run["steps_seen"] and _elsewhere(tables, run):
        return (
            "only processes that the script starts itself compile, and those are not measured "
            "(ranks of torchrun are: --nproc-per-node)"
        )
    if not run["steps_seen"]:
        return "no step was seen"
    steps = "1 step" if run["steps_seen"] == 1 else f"{run['steps_seen']} steps"
    return f"the script ended after {steps}, before both sides were measured"
