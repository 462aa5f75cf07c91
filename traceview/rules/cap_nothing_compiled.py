"""
## What it finds
A `torch.compile` call without effect: (a) the compiled module is used only through another method
than the one that was compiled, (b) what torch.compile returned is never called, or a module that
was compiled in place is called by its `forward` alone, (c) compiling is switched off, (d) it is
called, and all of its code lies in files that Dynamo does not compile, (e) it is called a few times
and then never again, and the script goes on for long.

## Why it costs
The script runs in eager and looks as if it were compiled.

## Evidence
The calls counted on each compiled callable and the methods fetched through it; whether it died
uncalled; `disable=`, the stance, and TORCH_COMPILE_DISABLE. A callable that is alive and not yet
called counts only where the script came to its own end, and no other one was called either or its
code ran in the profiled steps all the same: its turn may come later in the job. A module that was
compiled in place counts wherever its `forward` ran in them. One that died counts unless its line
compiled the same function again and that one is called. For (d): calls were counted, compiling was
watched, and nothing was compiled in the whole run, or in no call of a torch.nn module that was
compiled in place. For (e): no step could be timed, and all in eager the script went on for more
than half of its time after the last call of anything that it compiled.

## What to do
(a) Compile the method that is called. (b) Keep and call what torch.compile returns, or use
`module.compile()`, which works in place; then call the module, not its `forward`. (c) Switch it on
again. (d) Compile through `torch.compile(module)`, which starts in the module's own call. (e)
Compile what replaces it.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html
- torch/_dynamo/eval_frame.py, `OptimizedModule`
- https://github.com/pytorch/pytorch/issues/141473
- https://github.com/huggingface/transformers/issues/34906
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from traceview.derive.facts import eager_code
from traceview.derive.facts.places import in_torch
from traceview.rules import _edits
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    compile_call,
    first_rank,
    is_timed,
    milliseconds,
    rows,
    seconds,
    severity,
    short,
    times,
)

CODE = "TV110"
NEEDS = frozenset({"regions", "runs"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"compile", "idle_compile", "overheads_added"})

_EAGER = Cost(about="everything that compiling could save; not measured, as nothing is compiled")
_IN_TORCH = (
    "module.compile() makes Dynamo start in torch's own code that calls forward, and Dynamo skips "
    "that code. The forward of this class and of everything in it is torch's own code too, so "
    "Dynamo never starts."
)
_SKIPPED = (
    "Dynamo skips torch's own code, other files on its skip list, and functions that it cannot "
    "trace as a whole, such as generators. It found no other code in these calls."
)
#: Imports and the way out take seconds on a busy machine.
LEAST_SECONDS = 10.0
LEAST_SHARE = 0.50
#: The line that made a compiled callable, and what of.
_SITE = ("call_file", "call_line", "target_file", "target_line")
_MODULES = ("module", "module_compile")


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for a global switch, otherwise one per region without effect."""
    regions = first_rank(rows(tables, "regions"))
    runs = rows(tables, "runs")
    switched_off = _switch(tables, runs)
    if switched_off and regions:
        yield _forced(compile_call(regions[0]), *switched_off)
        return
    cut_short = not all(row["by_itself"] for row in rows(tables, "script_ends"))
    rest = None if is_timed(tables) else _rest_s(tables)
    for region in regions:
        place = compile_call(region)
        if region["disable"]:
            fact = f"torch.compile({region['name']}, disable=True) at {short(place)}"
            removed = _edits.without(_edits.source_line(tables, place), "disable")
            yield _forced(place, fact, "Remove disable=True.", "regions", removed)
        elif region["calls"]:
            if _nothing_compiled(tables, region):
                yield _passed_over(region, place)
            elif rest is not None:
                yield _left_behind(region, place, rest)
        elif region["error"] is None:
            if region["methods_used"] and region["kind"] in _MODULES:
                yield _bypassed(region, place)
            else:
                yield from _never_called(tables, region, regions, cut_short=cut_short)


def _rest_s(tables: Tables) -> float | None:
    """Seconds of the all-eager pass after its last compiled call, where they are most of it."""
    baseline = pl.col("pass") == "baseline"
    ends = first_rank(tables["script_ends"].filter(baseline).to_dicts())
    runs = first_rank(tables["runs"].filter(baseline).to_dicts())
    if len(ends) != 1 or ends[0]["after_calls_s"] is None or not runs[0]["wall_s"]:
        return None
    after: float = ends[0]["after_calls_s"]
    return after if after >= max(LEAST_SECONDS, LEAST_SHARE * runs[0]["wall_s"]) else None


def _never_called(
    tables: Tables, region: Row, regions: list[Row], *, cut_short: bool
) -> Iterator[Finding]:
    ms = eager_code.uncalled_ms(tables).get(region["region_id"])
    in_place, called = region["kind"] == "module_compile", any(row["calls"] for row in regions)
    ran_in_eager = ms is not None and (in_place or not cut_short)
    # It died uncalled, and none took its place: a module may have been loaded again.
    lost = region["collected_uncalled"] and not any(
        row["calls"] and all(row[part] == region[part] for part in _SITE) for row in regions
    )
    if not (ran_in_eager or lost or not (called or cut_short)):
        return  # its turn may come
    place = compile_call(region)
    if not in_place:
        yield _dropped(region, place, _edits.source_line(tables, place))
        return
    alike = [row for row in regions if not row["calls"] and _target(row) == _target(region)]
    if region is alike[0]:
        yield _passed_by(tables, alike, ms)


def _target(region: Row) -> tuple[object, ...]:
    return region["target_file"], region["target_line"]


def _nothing_compiled(tables: Tables, region: Row) -> bool:
    """Whether nothing was compiled at all, or in no call of a module of torch's own, in place.

    Of other callables each call may be served by what was compiled for another one.
    """
    if not tables.has("compile_intervals"):
        return False
    if not rows(tables, "compile_intervals") and not rows(tables, "compiles"):
        return True
    file = region["target_file"]
    if region["kind"] != "module_compile" or not file or not in_torch(Location(file, 1)):
        return False
    alike = {row["region_id"] for row in rows(tables, "regions") if _target(row) == _target(region)}
    calls = [row for row in rows(tables, "calls", stance="compiled") if row["region_id"] in alike]
    return bool(calls) and not any(row["compiles_inside"] for row in calls)


def _switch(tables: Tables, runs: list[Row]) -> tuple[str, str, str] | None:
    """(fact, remedy, table) of a switch that turns compiling off for the whole process."""
    for row in rows(tables, "environment", section="env"):
        if row["name"] == "TORCH_COMPILE_DISABLE" and row["value"] not in (None, "", "0"):
            return f"TORCH_COMPILE_DISABLE={row['value']}", "Unset it.", "environment"
    if any(row["dynamo_disabled"] for row in runs):
        remedy = "Leave torch._dynamo.config.disable at False."
        return "torch._dynamo.config.disable is set", remedy, "runs"
    if any(row["user_stance"] == "force_eager" for row in runs):
        remedy = 'Set it back with torch.compiler.set_stance("default").'
        return 'torch.compiler.set_stance("force_eager")', remedy, "runs"
    return None


def _forced(
    place: Location | None, fact: str, remedy: str, table: str, change: Snippet | None = None
) -> Finding:
    return Finding(
        code=CODE,
        rule="cap-nothing-compiled",
        severity="warning",
        title=f"Compiling is switched off: {fact}",
        explanation="The script calls torch.compile, but every call runs the original Python code.",
        cost=_EAGER,
        confidence="measured",
        location=place,
        evidence=(Evidence(fact, table),),
        what_to_do=remedy,
        snippet=change,
    )


def _bypassed(region: Row, place: Location | None) -> Finding:
    methods = sorted(set(region["methods_used"]))
    method = methods[0]
    return Finding(
        code=CODE,
        rule="cap-nothing-compiled",
        severity="warning",
        title=f"{region['name']} is compiled, but only .{method}() is called: it stays in eager",
        explanation=(
            "torch.compile(module) compiles what runs when the module itself is called. Other "
            "methods are passed on to the original module and run in eager, and so does what "
            "they call."
        ),
        cost=_EAGER,
        confidence="measured",
        location=place,
        evidence=(
            Evidence(
                f"compiled module called 0 times; fetched through it: {', '.join(methods)}",
                "regions",
            ),
        ),
        what_to_do=(
            f"Compile the method that is called, .{method}. If it calls the module itself, as "
            "self(x), module.compile() is enough: it works in place and covers calls from within."
        ),
        snippet=Snippet("python", f"model.{method} = torch.compile(model.{method})"),
    )


def _passed_by(tables: Tables, alike: list[Row], ms: float | None) -> Finding:
    """Modules of one class, compiled in place; ``ms`` of a step are in all their ``forward``."""
    region, places = alike[0], [place for row in alike if (place := compile_call(row))]
    runs = "" if ms is None else f", and forward() takes {milliseconds(ms)} of a step"
    about = "time of its forward() in eager; compiling saves a part of it"
    return Finding(
        code=CODE,
        rule="cap-nothing-compiled",
        severity=severity(tables, ms),
        title=f"{region['name']}.compile() has no effect: the module itself is never called",
        explanation=(
            "module.compile() compiles what runs when the module itself is called. Calling "
            "module.forward(x) bypasses that, and the module's hooks."
        ),
        cost=_EAGER if ms is None else Cost(ms, None, about),
        confidence="measured" if ms is None else "derived",
        location=places[0] if places else None,
        also_at=tuple(dict.fromkeys(places[1:4])),
        evidence=(Evidence(f"called {times(0)}{runs}", "regions" if ms is None else "line_ops"),),
        what_to_do="Call the module, not its forward: module(x) instead of module.forward(x).",
        snippet=Snippet("python", "y = module(x)  # not module.forward(x)"),
    )


def _dropped(region: Row, place: Location | None, line: str | None) -> Finding:
    died = bool(region["collected_uncalled"])
    in_place = region["kind"] in _MODULES
    return Finding(
        code=CODE,
        rule="cap-nothing-compiled",
        severity="warning",
        title=f"The result of torch.compile({region['name']}) is never called",
        explanation=(
            "torch.compile does not change its argument; it returns a compiled callable. "
            + ("That one was discarded" if died else "That one was not called")
            + f", so the original {region['name']} runs in eager."
        ),
        cost=_EAGER,
        confidence="measured",
        location=place,
        evidence=(
            Evidence(
                f"called {times(0)}, " + ("freed without a call" if died else "still alive"),
                "regions",
            ),
        ),
        what_to_do=(
            "Call the module's own compile(), which works in place."
            if in_place
            else "Assign what torch.compile returns, and call that."
        ),
        snippet=_edits.kept(line, in_place=in_place)
        or Snippet("python", "model.compile()" if in_place else "f = torch.compile(f)"),
    )


def _left_behind(region: Row, place: Location | None, rest: float) -> Finding:
    return Finding(
        code=CODE,
        rule="cap-nothing-compiled",
        severity="warning",
        title=(
            f"{region['name']} is called {times(region['calls'])} compiled, then never again in "
            "the rest of the script"
        ),
        explanation=(
            "The script does not go on with what torch.compile returned: another object replaced "
            "it, the original is called instead, or its work was done."
        ),
        cost=_EAGER,
        confidence="heuristic",
        location=place,
        evidence=(
            Evidence(
                f"all in eager, the script goes on for {seconds(rest)} after the last call", "calls"
            ),
        ),
        what_to_do=(
            "Compile what replaces it, too. New weights can be loaded into the compiled module "
            "itself, with load_state_dict: that compiles nothing again."
        ),
    )


def _passed_over(region: Row, place: Location | None) -> Finding:
    in_place = region["kind"] == "module_compile"
    file = region["target_file"] or "an unknown file"
    return Finding(
        code=CODE,
        rule="cap-nothing-compiled",
        severity="warning",
        title=f"{region['name']} is called {times(region['calls'])}, and nothing of it is compiled",
        explanation=_IN_TORCH if in_place and in_torch(Location(file, 1)) else _SKIPPED,
        cost=_EAGER,
        confidence="measured",
        location=place,
        evidence=(
            Evidence(f"defined in {file}, called {times(region['calls'])}", "regions"),
            Evidence("Dynamo compiled nothing in any of these calls", "compile_intervals"),
        ),
        what_to_do=(
            "Use torch.compile(module) and call what it returns: it starts at the module's own "
            "call. Or put the layers into an nn.Module class of your own."
            if in_place
            else "Compile a function or module of your own that makes these calls."
        ),
        snippet=Snippet("python", "model = torch.compile(model)") if in_place else None,
    )
