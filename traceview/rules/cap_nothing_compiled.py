"""
## What it finds
A `torch.compile` call without effect: (a) the compiled module is used only through another method
than the one that was compiled, (b) what torch.compile returned is never called, or a module that
was compiled in place is called by its `forward` alone, (c) compiling is switched off, (d) it is
called, and all of its code lies in files that Dynamo does not compile, it is TorchScript
(torch.jit.trace or script) or only calls such a module, or a call runs under a TorchDispatchMode
such as FlopCounterMode, (e) it is called a few times and then never again,
and the script goes on for long.

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
compiled in place or is TorchScript; a dispatch mode that was active when the steps began is the
reason. A mode that was active in one call is the reason if no compiled code ran in it or in any
watched call after it: Dynamo skips the function from that call on. For (e): no
step could be timed, and all in eager the script went on for more than half of its time after the
last call of anything that it compiled.

## What to do
(a) Compile the method that is called. (b) Keep and call what torch.compile returns, or use
`module.compile()`, which works in place; then call the module, not its `forward`. (c) Switch it on
again. (d) Compile through `torch.compile(module)`, which starts in the module's own call; compile
the original module, not its trace; enter the mode together with `set_stance("force_eager")`, for
one step only. (e) Compile what replaces it. `traceview try` tries (c) in the same process, by
`stance=default` or `torch._dynamo.config.disable=False`.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html
- torch/_dynamo/eval_frame.py, `OptimizedModule`
- torch/_dynamo/convert_frame.py, `CatchErrorsWrapper`
- https://github.com/pytorch/pytorch/issues/141473
- https://github.com/huggingface/transformers/issues/34906
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from traceview.derive.facts import eager_code
from traceview.derive.facts.places import frames, in_torch
from traceview.derive.outcome import replaces_module
from traceview.rules import _edits
from traceview.rules._starts import setting_line
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    compile_call,
    first,
    first_rank,
    is_timed,
    milliseconds,
    rows,
    seconds,
    severity,
    short,
    step_ms,
    times,
)

CODE = "TV110"
NEEDS = frozenset({"regions", "runs"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"compile", "idle_compile", "overheads_added"})

_ALL = "all of the step, which runs in eager; compiling saves a part of it"
_EAGER = Cost(about="everything that compiling could save; not measured, as nothing is compiled")
_IN_TORCH = (
    "module.compile() makes Dynamo start in torch's own code that calls forward, and Dynamo skips "
    "that code. The forward of this class and of everything in it is torch's own code too, so "
    "Dynamo never starts."
)
_RESUMABLE = (
    "Dynamo traces a call from its beginning to its return. A generator or a coroutine returns at "
    "once, and its code runs piece by piece later, so Dynamo skips it."
)
_SKIPPED = (
    "Dynamo skips torch's own code, other files on its skip list, and functions that it cannot "
    "trace as a whole, such as generators. It found no other code in these calls."
)
_ONE_STEP = (
    "Call the original instead of the compiled one under {mode}, or enter it together with "
    'torch.compiler.set_stance("force_eager"), for one step only: Dynamo then does not meet that '
    "call. Operators of one step are the same in the next."
)
_SCRIPTED = (
    "TorchScript runs in an interpreter of its own, in C++. Dynamo finds no Python code there to "
    "compile, so it passes each call through unchanged."
)
#: Imports and the way out take seconds on a busy machine.
LEAST_SECONDS = 10.0
LEAST_SHARE = 0.50
#: Calls from the one under a dispatch mode on that show whether compiled code runs again.
LEAST_AFTER = 3
#: The line that made a compiled callable, and what of.
_SITE = ("call_file", "call_line", "target_file", "target_line")
_MODULES = ("module", "module_compile")
#: What most of these findings have in common.
_finding = partial(
    Finding,
    code=CODE,
    rule="cap-nothing-compiled",
    severity="warning",
    cost=_EAGER,
    confidence="measured",
)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for a global switch, otherwise one per region without effect."""
    regions = first_rank(rows(tables, "regions"))
    # Switches that turn compiling off for all of it: name, fact, advice, table, what undoes it.
    enabled = ("torch._dynamo.config.disable=False",)
    env = rows(tables, "environment", section="env", name="TORCH_COMPILE_DISABLE")
    switches = [
        (row["name"], f"{row['name']}={row['value']}", "Unset it.", "environment", enabled)
        for row in env
        if row["value"] not in (None, "", "0")
    ]
    runs = rows(tables, "runs")
    if any(row["dynamo_disabled"] for row in runs):
        remedy = "Leave torch._dynamo.config.disable at False."
        switches.append(("disable", "torch._dynamo.config.disable is set", remedy, "runs", enabled))
    if any(row["user_stance"] == "force_eager" for row in runs):
        remedy = 'Set it back with torch.compiler.set_stance("default").'
        fact = 'torch.compiler.set_stance("force_eager")'
        switches.append(("force_eager", fact, remedy, "runs", ("stance=default",)))
    if switches and regions:
        setting, *_ = switch = switches[0]
        yield _forced(setting_line(tables, setting) or compile_call(regions[0]), *switch[1:])
        return

    # Seconds of the all-eager pass after its last compiled call, where they are most of it.
    rest, baseline = None, pl.col("pass") == "baseline"
    ends = first_rank(tables["script_ends"].filter(baseline).to_dicts())
    whole = first_rank(tables["runs"].filter(baseline).to_dicts())
    after = ends[0]["after_calls_s"] if len(ends) == 1 and not is_timed(tables) else None
    if after and whole[0]["wall_s"]:
        rest = after if after >= max(LEAST_SECONDS, LEAST_SHARE * whole[0]["wall_s"]) else None
    copied = {row["region_id"] for row in rows(tables, "module_copies") if replaces_module(row)}
    for region in regions:
        if region["region_id"] in copied:
            continue
        if region["disable"]:
            place = compile_call(region)
            fact = f"torch.compile({region['name']}, disable=True) at {short(place)}"
            removed = _edits.without(_edits.source_line(tables, place), "disable")
            yield _forced(place, fact, "Remove disable=True.", "regions", change=removed)
        elif region["calls"]:
            yield from _called(tables, region, rest)
        elif region["error"] is None and region["methods_used"] and region["kind"] in _MODULES:
            yield _bypassed(region)
        elif region["error"] is None:
            yield from _never_called(tables, region, regions)


def _forced(
    place: Location | None,
    fact: str,
    advice: str,
    table: str,
    remedy: tuple[str, ...] = (),
    change: Snippet | None = None,
) -> Finding:
    return _finding(
        title=f"Compiling is switched off: {fact}",
        explanation="The script calls torch.compile, but every call runs the original Python code.",
        location=place,
        evidence=(Evidence(fact, table),),
        what_to_do=advice,
        snippet=change,
        remedy=remedy,
    )


def _called(tables: Tables, region: Row, rest: float | None) -> Iterator[Finding]:
    """Nothing of it is compiled; else the script goes on without it for ``rest`` seconds."""
    name, often = region["name"], times(region["calls"])
    in_place, file = region["kind"] == "module_compile", region["target_file"] or "an unknown file"
    torchs = in_place and in_torch(Location(file, 1))
    recorded, empty = tables.has("compile_intervals"), False
    if recorded and not rows(tables, "compile_intervals") and not rows(tables, "compiles"):
        empty = True
    elif recorded and (torchs or (region["torchscript"] and not region["torchscript_within"])):
        # Of other callables each call may be served by what was compiled for another one.
        alike = {each["region_id"] for each in _of_target(rows(tables, "regions"), region)}
        calls = rows(tables, "calls", stance="compiled")
        inside = [row["compiles_inside"] for row in calls if row["region_id"] in alike]
        empty = bool(inside) and not any(inside)
    mode = first(tables, "environment", name="dispatch_modes")
    if empty and region["torchscript"]:
        yield _torchscript(region)
    elif empty and mode:
        yield _under_mode(tables, region, mode["value"])
    elif region["dispatch_modes"] and (found := _after_mode(tables, region, empty=empty)):
        yield found
    elif empty:
        why = ": it is a generator or a coroutine" if region["resumable"] else ""
        yield _finding(
            title=f"{name} is called {often}, and nothing of it is compiled{why}",
            explanation=_IN_TORCH if torchs else _RESUMABLE if why else _SKIPPED,
            location=compile_call(region),
            evidence=(
                Evidence(f"defined in {file}, called {often}", "regions"),
                Evidence("Dynamo compiled nothing in any of these calls", "compile_intervals"),
            ),
            what_to_do=(
                "Use torch.compile(module) and call what it returns: it starts at the module's own "
                "call. Or put the layers into an nn.Module class of your own."
                if in_place
                else "Compile a function that computes one item, and call it in the loop."
                if why
                else "Compile a function or module of your own that makes these calls."
            ),
            snippet=Snippet("python", "model = torch.compile(model)") if in_place else None,
        )
    elif rest is not None:
        text = f"all in eager, the script goes on for {seconds(rest)} after the last call"
        yield _finding(
            title=f"{name} is called {often} compiled, then never again in the rest of the script",
            explanation=(
                "The script does not go on with what torch.compile returned: another object "
                "replaced it, the original is called instead, or its work was done."
            ),
            confidence="heuristic",
            location=compile_call(region),
            evidence=(Evidence(text, "calls"),),
            what_to_do=(
                "Compile what replaces it, too. New weights can be loaded into the compiled module "
                "itself, with load_state_dict: that compiles nothing again."
            ),
        )


def _under_mode(tables: Tables, region: Row, modes: str) -> Finding:
    """Dispatch modes, the outermost first, are active around its calls."""
    mode, called = _innermost(modes), f"{region['name']} is called {times(region['calls'])}"
    return _by_mode(
        region,
        mode,
        setting_line(tables, mode),
        title=f"{called}, and nothing of it is compiled: {mode} is active",
        explanation=(
            "Dynamo compiles nothing while a TorchDispatchMode of the script's is active: such a "
            "mode handles every operator in Python, so each call runs in eager."
        ),
        evidence=(
            Evidence(f"active dispatch modes when the steps began: {modes}", "environment"),
            Evidence("Dynamo compiled nothing in any of these calls", "compile_intervals"),
        ),
    )


def _innermost(modes: str) -> str:
    return modes.rpartition(", ")[2]


def _by_mode(
    region: Row,
    mode: str,
    place: Location | None,
    *,
    title: str,
    explanation: str,
    evidence: tuple[Evidence, ...],
    cost: Cost = _EAGER,
) -> Finding:
    """A dispatch mode that is entered at ``place`` keeps a callable in eager."""
    made = compile_call(region)
    return _finding(
        cost=cost,
        title=f"{title} ({short(place)})" if place else title,
        explanation=explanation,
        location=place or made,
        also_at=(made,) if place and made else (),
        evidence=evidence,
        what_to_do=_ONE_STEP.format(mode=mode),
        snippet=Snippet(
            "python", f'with torch.compiler.set_stance("force_eager"), {mode}():\n    ...'
        ),
    )


def _torchscript(region: Row) -> Finding:
    """It is TorchScript, or there is some in it and nothing else to compile."""
    within, kind = region["torchscript_within"], region["torchscript"]
    what = "function" if kind == "ScriptFunction" else "module"
    how = f"it calls a TorchScript {what}, {kind}" if within else f"it is a TorchScript {what}"
    called = f"{region['name']} is called {times(region['calls'])}"
    return _finding(
        title=f"{called}, and nothing of it is compiled: {how}",
        explanation=_SCRIPTED,
        confidence="derived" if within else "measured",
        location=compile_call(region),
        evidence=(
            Evidence(f"{how}; called {times(region['calls'])}", "regions"),
            Evidence("Dynamo compiled nothing in any of these calls", "compile_intervals"),
        ),
        what_to_do=(
            f"Compile the original Python {what}, without torch.jit.trace, script or freeze. Where "
            "only the saved TorchScript is at hand, build the model from its source and load the "
            "weights: its state_dict() has the same names."
        ),
        snippet=Snippet("python", "model = torch.compile(model)  # not torch.jit.trace(model, …)"),
    )


def _after_mode(tables: Tables, region: Row, *, empty: bool) -> Finding | None:
    """Where no compiled code ran in the call under a dispatch mode and in those after it."""
    mine = ("pass", "rank", "pid", "region_id")
    after = [
        row
        for row in rows(tables, "served_calls", after_modes=True)
        if all(row[part] == region[part] for part in mine)
    ]
    calls = sum(row["calls"] or 0 for row in after)
    served = calls - sum(row["eager_calls"] or 0 for row in after)
    in_eager = empty if calls < LEAST_AFTER else not served
    if in_eager:
        return _skipped_for_good(tables, region)
    # Few calls after it were watched: then by the profiled steps.
    counts = first(tables, "step_counts", stance="compiled")
    none_entered = counts is not None and counts["compiled_regions"] == 0
    if calls < LEAST_AFTER and not served and none_entered:
        # A mode was entered after it was compiled, and is active in the steps.
        modes, number = region["dispatch_modes"], f"call {region['dispatch_modes_call'] + 1:,}"
        mode = _innermost(modes)
        return _by_mode(
            region,
            mode,
            setting_line(tables, mode),
            cost=Cost(step_ms(tables, "compiled"), None, _ALL),
            title=f"{region['name']} is compiled, but runs in eager under {mode}",
            explanation=(
                "While a TorchDispatchMode of the script's is active, Dynamo compiles nothing and "
                "enters no compiled code: such a mode handles every operator in Python."
            ),
            evidence=(
                Evidence(f"active dispatch modes in its {number}: {modes}", "regions"),
                Evidence("no compiled code ran in the profiled steps", "step_counts"),
            ),
        )
    return None


def _skipped_for_good(tables: Tables, region: Row) -> Finding:
    """A call under a dispatch mode made Dynamo skip it for the rest of the run."""
    modes, number, name = region["dispatch_modes"], region["dispatch_modes_call"], region["name"]
    mode, which = _innermost(modes), "first call" if number == 0 else f"call {number + 1:,}"
    # The `with` of the mode; of several the one that is nearest above the first call.
    place = setting_line(tables, mode)
    sites = first_rank(rows(tables, "setting_sites", name=mode))
    near = [
        site
        for at in (frames(region["first_call_stack"]) if number == 0 else ())
        for site in sites
        if (site["file"], site["function"]) == (at.file, at.function)
        and at.line is not None
        and site["line"] <= at.line
    ]
    if near:
        last = max(near, key=lambda site: site["line"])
        place = Location(last["file"], last["line"], last["function"])
    return _by_mode(
        region,
        mode,
        place,
        title=f"{name} stays in eager: its {which} ran under {mode}",
        explanation=(
            f"Dynamo compiles nothing while a TorchDispatchMode of the script's is active. It "
            f"skipped {name} in that call, and it does not look at a skipped function again."
        ),
        evidence=(
            Evidence(f"active dispatch modes in its {which}: {modes}", "regions"),
            Evidence("no compiled code ran in that call or any watched one after", "served_calls"),
        ),
    )


def _bypassed(region: Row) -> Finding:
    """Methods of the module are called, and not the module itself."""
    method, *others = sorted(set(region["methods_used"]))
    fetched = f"fetched through it: {', '.join([method, *others])}"
    return _finding(
        title=f"{region['name']} is compiled, but only .{method}() is called: it stays in eager",
        explanation=(
            "torch.compile(module) compiles what runs when the module itself is called. Other "
            "methods are passed on to the original module and run in eager, and so does what "
            "they call."
        ),
        location=compile_call(region),
        evidence=(Evidence(f"compiled module called 0 times; {fetched}", "regions"),),
        what_to_do=(
            f"Compile the method that is called, .{method}. If it calls the module itself, as "
            "self(x), module.compile() is enough: it works in place and covers calls from within."
        ),
        snippet=Snippet("python", f"model.{method} = torch.compile(model.{method})"),
    )


def _never_called(tables: Tables, region: Row, regions: list[Row]) -> Iterator[Finding]:
    ms = tables.once(eager_code.uncalled_ms).get(region["region_id"])
    in_place, called = region["kind"] == "module_compile", any(row["calls"] for row in regions)
    cut_short = not all(row["by_itself"] for row in rows(tables, "script_ends"))
    ran_in_eager = ms is not None and (in_place or not cut_short)
    # It died uncalled, and none took its place: a module may have been loaded again.
    died = bool(region["collected_uncalled"])
    lost = died and not any(
        row["calls"] and all(row[part] == region[part] for part in _SITE) for row in regions
    )
    if not (ran_in_eager or lost or not (called or cut_short)):
        return  # its turn may come
    name, place = region["name"], compile_call(region)
    if not in_place:
        own = region["kind"] in _MODULES
        paste = Snippet("python", "model.compile()" if own else "f = torch.compile(f)")
        end = "freed without a call" if died else "still alive"
        yield _finding(
            title=f"The result of torch.compile({name}) is never called",
            explanation=(
                "torch.compile does not change its argument; it returns a compiled callable. "
                f"That one was {'discarded' if died else 'not called'}, so the original {name} "
                "runs in eager."
            ),
            location=place,
            evidence=(Evidence(f"called {times(0)}, {end}", "regions"),),
            what_to_do=(
                "Call the module's own compile(), which works in place."
                if own
                else "Assign what torch.compile returns, and call that."
            ),
            snippet=_edits.kept(_edits.source_line(tables, place), in_place=own) or paste,
        )
        return

    # Modules of one class are one finding; ``ms`` of a step are in the ``forward`` of them all.
    alike = [row for row in _of_target(regions, region) if not row["calls"]]
    if region is not alike[0]:
        return
    about = "time of its forward() in eager; compiling saves a part of it"
    runs = "" if ms is None else f", and forward() takes {milliseconds(ms)} of a step"
    places = [at for row in alike if (at := compile_call(row))]
    yield _finding(
        severity=severity(tables, ms),
        title=f"{name}.compile() has no effect: the module itself is never called",
        explanation=(
            "module.compile() compiles what runs when the module itself is called. Calling "
            "module.forward(x) bypasses that, and the module's hooks; a copy of the module "
            "(copy.deepcopy, pickle) is not compiled."
        ),
        cost=_EAGER if ms is None else Cost(ms, None, about),
        confidence="measured" if ms is None else "derived",
        location=places[0] if places else None,
        also_at=tuple(dict.fromkeys(places[1:4])),
        evidence=(Evidence(f"called {times(0)}{runs}", "regions" if ms is None else "line_ops"),),
        what_to_do=(
            "Call the module, not its forward: module(x) instead of module.forward(x). Copy a "
            "module first, and compile the copies."
        ),
        snippet=Snippet("python", "y = module(x)  # not module.forward(x)"),
    )


def _of_target(regions: list[Row], region: Row) -> list[Row]:
    """Those of the same function or class."""
    target = ("target_file", "target_line")
    return [row for row in regions if all(row[part] == region[part] for part in target)]
