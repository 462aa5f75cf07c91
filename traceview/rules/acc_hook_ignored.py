"""
## What it finds
A hook that is registered on a module after the first compiled call, and that compiled code does not
run: what was compiled before is used on, without it.

## Why it costs
Eager calls the hook, compiled code does not, without a message: what it changes or collects is
missing, and results are wrong. Dynamo guards the hooks of the module that is compiled itself, and
of modules that had one when they were compiled. For modules within it that had none, it leaves the
guard out, since checking an empty dictionary for each module takes time in every call
(`torch._dynamo.config.skip_nnmodule_hook_guards`).

## Evidence
In a few calls that nothing times, and in two at the script's end, the collector looks at which
modules are called in Python: there hooks run. The module of the hook is called in eager (or
compiled code has a guard on it), and in none of the compiled calls; and no graph of that callable
was captured after the hook was registered. (A backward that is compiled later is of a graph
captured before.) Where no compiled call was looked at, it was called after that, and all of it is
one graph without a break: no module within it is called in Python. A hook that makes Dynamo compile
again, that runs between graphs, or that is removed before a call was looked at, is not reported.

## What to do
Register hooks before the first compiled call. Where that can't be, set
`torch._dynamo.config.skip_nnmodule_hook_guards = False` before it: a hook that comes later then
makes Dynamo compile again, and each call checks a few guards more. Or call
`torch.compiler.reset()` after registering it, which compiles everything again.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_nn_module.html
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.reset.html
- torch/_dynamo/config.py, `skip_nnmodule_hook_guards`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._accuracy import RESULT, compiles_of
from traceview.rules.kit import (
    Evidence,
    Finding,
    Row,
    Snippet,
    Tables,
    compile_call,
    first_rank,
    line_of,
    rows,
    short,
)
from traceview.tables import grouped

CODE = "TV705"
NEEDS = frozenset({"late_hooks"})
SEVERITIES = ("error",)
EXPLAINS = frozenset({"less_work"})

_SETTING = "torch._dynamo.config.skip_nnmodule_hook_guards=False"


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each line that registers hooks."""
    ignored = [row for row in first_rank(rows(tables, "late_hooks")) if _is_ignored(tables, row)]
    regions = {row["region_id"]: row for row in first_rank(rows(tables, "regions"))}
    for found in grouped(ignored, "file", "line").values():
        row, region = found[0], regions.get(found[0]["region_id"])
        place = line_of(row)
        kind = row["method"].removeprefix("register_").removesuffix("_hook").replace("_", "-")
        modules = list(dict.fromkeys(each["path"] or each["module"] for each in found))
        on = modules[0] if len(modules) == 1 else f"{len(modules)} modules"
        made = compile_call(region)
        name = region["name"] if region else "a compiled callable"
        at = f" ({short(place)})" if place else ""
        where = row["path"] or row["module"]
        seen = (
            f"called in {row['eager_runs']} of {row['eager_calls']} eager calls"
            if row["eager_calls"]
            else "guarded by the compiled code"
        )
        yield Finding(
            code=CODE,
            rule="acc-hook-ignored",
            severity="error",
            title=f"Compiled code does not run the {kind} hook on {on}{at}",
            explanation=(
                f"{name} was compiled before the hook was registered, on a module within it that "
                "had none. Dynamo does not guard that, so the compiled code of before is used on, "
                "without the hook. In eager the hook runs."
            ),
            cost=RESULT,
            confidence="measured" if row["eager_runs"] and row["compiled_calls"] else "derived",
            location=place,
            also_at=(made,) if made else (),
            evidence=(
                Evidence(
                    f"{where} is {seen}, and in 0 of {row['compiled_calls']} compiled ones"
                    if row["compiled_calls"]
                    else f"{where} is {seen}; {name} is one graph without a break, called after "
                    "the hook was registered",
                    "late_hooks",
                ),
                Evidence(f"no graph of {name} was captured after that", "compile_regions"),
            ),
            what_to_do=(
                f"Register the hook before the first call of {name}; or set "
                "torch._dynamo.config.skip_nnmodule_hook_guards = False before that call; or call "
                "torch.compiler.reset() after registering it."
            ),
            snippet=Snippet("python", "torch._dynamo.config.skip_nnmodule_hook_guards = False"),
            remedy=(_SETTING,),
        )


def _is_ignored(tables: Tables, row: Row) -> bool:
    """Whether the module is called in eager only, and compiled code is older than its hook."""
    if row["recompiled"] or row["compiled_runs"]:
        return False
    mine = compiles_of(tables, row["region_id"])
    keys = {each["compile_key"] for each in mine}
    if not row["compiled_calls"]:
        # Then compiled calls must have come after the hook, and run nothing but one graph.
        frames = {(each["compile_id"] or "").partition("/")[0] for each in mine}
        known = [each for each in rows(tables, "compiles") if each["compile_key"] in keys]
        broken = any(each["compile_key"] in keys for each in rows(tables, "graph_breaks"))
        if broken or len(frames) != 1 or any(each["outcome"] != "ok" for each in known):
            return False
        calls = rows(tables, "calls", pid=row["pid"], region_id=row["region_id"])
        later = (each for each in calls if each["started_us"] > row["registered_us"])
        if not any(each["stance"] == "compiled" for each in later):
            return False
    # A backward is compiled at the first call of it, from what was captured before.
    captured = [each["started_us"] or 0.0 for each in mine if each["is_forward"] is not False]
    if any(started_us > row["registered_us"] for started_us in captured):
        return False
    if row["eager_calls"]:
        return bool(row["eager_runs"])
    if not row["path"]:
        return False
    inside = "".join(f"._modules['{part}']" for part in row["path"].split("."))
    names = (g["source_name"] for g in rows(tables, "guards") if g["compile_key"] in keys)
    return any(name is not None and inside in name for name in names)
