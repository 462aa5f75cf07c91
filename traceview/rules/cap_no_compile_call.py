"""
## What it finds
A script that does not call `torch.compile`: the module whose calls take most of its time; what
`--compile` made of it; or why `--compile` could compile nothing.

## Why it costs
Every step runs in eager. What compiling would gain is not known until it is measured.

## Evidence
The first calls of each `torch.nn.Module` that is not called from within another one: their median
host time without the first call, with the device drained before and after, and the time from one
call to the next. The backward pass is not in it. With `--compile`, the blocks of eager and compiled
steps.

## What to do
`traceview diagnose --compile TARGET` compiles it for one run, without an edit. Where that helped,
the line to add and its place are in the finding.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
- torch/nn/modules/module.py, `Module.compile`
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from traceview.rules import _edits
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    first,
    first_rank,
    milliseconds,
    outcome,
    percent,
    plural,
    rows,
    short,
    shorten,
    speedup,
    step_ms,
)

CODE = "TV129"
NEEDS = frozenset({"runs", "compile_targets"})
SEVERITIES = ("error", "warning", "info")

_finding = partial(Finding, code=CODE, rule="cap-no-compile-call", confidence="measured")
_UNKNOWN = Cost(about="what compiling would gain is not measured in this run")
_AUTO = "Use `--compile auto`, which takes the module whose calls take most of the time."


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding."""
    found = first_rank(rows(tables, "compile_targets"))
    if not found:
        return
    asked = [row for row in found if row["status"] != "seen"]
    if asked and asked[0]["status"] == "compiled":
        yield _compiled(tables, asked[0])
    elif asked:
        yield _refused(asked[0])
    elif not rows(tables, "regions") and not rows(tables, "compile_intervals"):
        yield _offer(found[0], first_rank(rows(tables, "compile_lines", reached=False)))


def _offer(seen: Row, lines: list[Row]) -> Finding:
    """``seen`` took most of the time; ``lines`` would compile something and did not run."""
    forward, period = seen["forward_ms"], seen["period_ms"]
    share = percent(min(1.0, forward / period)) if period else None
    part = f"{share} of the time from call to call, " if share else ""
    places = [Location(row["file"], row["line"]) for row in lines]
    skipped, check = "", ""
    if places:
        branch = lines[0]["branch"]
        skipped = f": torch.compile at {short(places[0])} did not run"
        check = f"Check the condition at line {branch}, which kept it from running. Or run"
        if branch is None:
            check = "Check whether that code is ever called. Or run"
        else:
            places.insert(1, Location(lines[0]["file"], branch))
    return _finding(
        severity="warning",
        title=f"{seen['name']} takes most of the time in eager and is never compiled{skipped}",
        explanation=(
            f"A forward pass of {seen['name']} takes {milliseconds(forward)} in eager, {part}"
            "more than any other module that the script calls. Compiling it would change its "
            "backward pass, too."
        ),
        cost=_UNKNOWN,
        location=places[0] if places else None,
        also_at=tuple(places[1:4]),
        evidence=(
            Evidence(f"median host time of a call: {milliseconds(forward)}", "compile_targets"),
        ),
        what_to_do=(
            f"{check or 'Run'} `traceview diagnose --compile {seen['target']}` with this script: "
            f"it compiles {seen['name']} for one run, without an edit, and measures what that "
            "gains."
        ),
        snippet=Snippet("shell", f"traceview diagnose --compile {seen['target']} SCRIPT"),
    )


def _compiled(tables: Tables, target: Row) -> Finding:
    """traceview compiled it, and the steps were measured, or not."""
    name, asked = target["name"], target["asked"]
    count = f" ({plural(target['instances'], 'instance')})" if target["kind"] == "class" else ""
    who = f"traceview compiled {name}{count} for this run (--compile {asked}), the script does not."
    place = target["made_file"] and target["made_line"]
    location = Location(target["made_file"], target["made_line"]) if place else None
    line = first(tables, "lines_to_add", region_id=target["region_id"])
    eager, compiled, ratio = step_ms(tables, "eager"), step_ms(tables, "compiled"), speedup(tables)
    evidence = [Evidence(f"torch.compile was called once for {name}", "compile_targets")]
    if outcome(tables) != "helped" or eager is None or compiled is None or ratio is None:
        return _finding(
            severity="info",
            title=f"The script itself never calls torch.compile: traceview compiled {name}",
            explanation=who,
            cost=Cost(),
            location=location,
            evidence=tuple(evidence),
            what_to_do="Leave it in eager unless a run with other findings fixed shows a gain.",
        )
    to_do = "Add the line that compiles it, as it was compiled in this run."
    if line is not None:
        where = "before" if line["before"] else "after"
        to_do = f"Add `{line['added']}` {where} this line, as it was compiled in this run."
        location = Location(line["file"], line["line"])
        snippet = _edits.beside(line)
    elif target["kind"] == "function":
        snippet = Snippet("python", f"import torch\n\n{name} = torch.compile({name})")
    elif target["kind"] == "class":
        own = name.rpartition(".")[2]
        loop = f"for part in model.modules():\n    if isinstance(part, {own}):\n"
        snippet = Snippet("python", f"{loop}        part.compile()")
    else:
        known = (target["target"] or asked).partition(":")[2]
        snippet = Snippet("python", f"{known or 'model'}.compile()")
    saved, both = (
        eager - compiled,
        f"{milliseconds(eager)} in eager, {milliseconds(compiled)} compiled",
    )
    evidence.append(Evidence(f"median of block pairs: {both}", "speedups"))
    return _finding(
        severity="warning",
        title=f"The script never compiles {name}, which saves {milliseconds(saved)} a step",
        explanation=who,
        cost=Cost(ms_per_step=saved, about="eager step less compiled step, paired blocks"),
        location=location,
        evidence=tuple(evidence),
        what_to_do=to_do,
        snippet=snippet,
    )


def _refused(target: Row) -> Finding:
    """``--compile`` compiled nothing: a sentence of fact, one of remedy."""
    asked, name = target["asked"], target["name"] or target["asked"]
    near = list(target["near"] or ())
    remedy = _AUTO
    match target["status"]:
        case "not_found":
            fact = f"--compile {asked}: no module, class or function has that name"
            if near:
                remedy = f"Names that are alike: {', '.join(near)}. {_AUTO}"
            else:
                remedy = f"Only names in modules are found, not variables of a function. {_AUTO}"
        case "not_called":
            fact = f"--compile {asked}: {'nothing' if asked == 'auto' else name} was called"
            if asked != "auto":
                fact = f"--compile {asked}: {name} is never called in this run"
            remedy = "Name what the steps call; a module must be called itself, not its forward()."
        case "too_few_calls":
            fact = f"--compile auto: no module was called {target['calls']} times"
            remedy = "Name the module or function: `--compile __main__:model`."
        case "script_compiles":
            fact = "--compile auto: the script calls torch.compile itself"
            remedy = "Run it without --compile, or name what else is to be compiled."
        case "compiled_already":
            fact = f"--compile {asked}: the script compiles {name} itself"
            remedy = "Run it without --compile."
        case "unsupported":
            fact = f"--compile {asked}: it is {target['why']}"
            remedy = f"Name a torch.nn.Module, its class, or a function. {_AUTO}"
        case _:
            fact = f"--compile {asked}: torch.compile raised {shorten(target['why'] or 'an error')}"
            remedy = "Check --compile-options."
    return _finding(
        severity="error",
        title=fact,
        explanation="Nothing was compiled for this run.",
        cost=_UNKNOWN,
        location=None,
        evidence=(Evidence(f"status of the target: {target['status']}", "compile_targets"),),
        what_to_do=remedy,
    )
