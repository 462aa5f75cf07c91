"""
## What it finds
A compiled callable that gives a wrong result, or wrong gradients of a right one, and the first
stage of the compiler at which it is wrong.

## Why it costs
The script silently computes something other than what it says.

## Evidence
A trial (`--compare-outputs`): one call, run again on copies. Compiled outputs, their gradients,
strides and memory, or what the call writes into arguments, weights and buffers are beyond the limit
of torch's own comparison (`torch._dynamo.utils.same`), and stay so with eager's random numbers and
eager's roundings. Backends are tried in order, from `eager` (Dynamo alone) through `aot_eager` and
`aot_eager_decomp_partition` to the script's own. The first that is wrong is reported if the error
is more than `wrong_share` of the values' own root mean square, or ten times eager's own and more
than a rounding, if elements are NaN or infinite on
one side only, or if there are no such outputs at all. The rule is silent where eager does not agree
with itself, and where only integers among floating-point outputs differ: of equal values each stage
may put another one first.

## What to do
Do not trust this callable's results until the cause is found. The stage says where to look: at
`eager` Dynamo's capture, at `aot_eager` what operators declare (a custom operator that writes into
an argument must say so in `mutates_args`), after that torch's decompositions and Inductor. The
backend before the first wrong one is right, and slower. `CompilerBisector` finds the pass, the
minifier makes a small script for a report.

## Settings
- `wrong_share`: root mean square error as part of that of the values, 0 to 1, that no rounding
  explains.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.reporting_issues.html
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_inductor/compiler_bisector.py
- torch/_dynamo/utils.py, `same`
- https://github.com/pytorch/pytorch/issues/160242
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.outputs import WRONG_SHARE, wrong_results
from traceview.rules._accuracy import RESULT, compared, described, result_name, worst
from traceview.rules.kit import Finding, Snippet, Tables, about_region, torch_before
from traceview.torchtext.stages import STAGES

CODE = "TV703"
NEEDS = frozenset({"output_verdicts", "output_checks"})
SEVERITIES = ("error",)
FOLLOWS = frozenset({"acc-dropped-operator"})

#: `compiler_bisector run COMMAND` exists in 2.13 and not in 2.6; the versions between are unknown.
BISECTS_COMMANDS = (2, 13)
#: Where to look, by the first stage that is wrong.
_LOOK = {
    "eager": "Look for Python state that the function reads and changes.",
    "aot_eager": (
        "If it contains a custom operator, check that mutates_args names every argument that it "
        "writes into, that it returns no view of an argument, and that its fake gives the right "
        "shapes and strides."
    ),
    "aot_eager_decomp_partition": "Look at the operators that torch, or the script, decomposes.",
}


def check(tables: Tables, *, wrong_share: float = WRONG_SHARE) -> Iterator[Finding]:
    """At most one finding for each callable."""
    for found in compared(tables):
        backend = found.verdict["wrong_from"]
        if backend is None or all(row["same"] for row in found.judged):
            continue
        wrong = wrong_results(found.verdict, found.checks, wrong_share)
        if not wrong:
            continue

        stages = list(found.stages)
        passed = stages[: stages.index(backend)]
        names = ", ".join(f'"{stage}"' for stage in passed)
        right = (
            f" Backend {names} is right." if len(passed) == 1 else f" Backends {names} are right."
        )
        at_inductor = backend == "inductor"
        what_to_do = (
            f'Until the cause is found use backend="{passed[-1]}", which is right and slower, '
            "or run this callable in eager. "
            if passed
            else "Run this callable in eager until the cause is found. "
        ) + (
            "To find the pass, let CompilerBisector run a check of yours that fails where "
            "the result is wrong; the minifier makes a small script for a report."
            if at_inductor
            else "The minifier makes a small script for a report."
        )
        after = "aot" if at_inductor else "dynamo"
        commands = f"TORCHDYNAMO_REPRO_AFTER={after} TORCHDYNAMO_REPRO_LEVEL=4 python SCRIPT"
        if at_inductor and not torch_before(tables, BISECTS_COMMANDS):
            commands = f"python -m torch._inductor.compiler_bisector run python CHECK\n{commands}"
        what = "a wrong result"
        if all(row["what"] == "gradient" for row in wrong):
            what = f"a wrong {result_name(worst(wrong)['output'])}"
        yield Finding(
            code=CODE,
            rule="acc-backend-bug",
            severity="error",
            title=f'Compiled {found.name} gives {what}, first with backend="{backend}"',
            explanation=(
                f"{described(worst(wrong))}. This run used eager's random numbers and roundings."
                f"{right if passed else ''} So the first wrong stage is "
                f"{STAGES.get(backend, 'this backend itself')}. {_LOOK.get(backend, '')}".rstrip()
            ),
            cost=RESULT,
            confidence="measured",
            location=found.place,
            evidence=tuple(found.proof()),
            what_to_do=what_to_do,
            snippet=Snippet("shell", commands),
            remedy=(f"backend={passed[-1]}" if passed else f"eager={found.name}",),
            about=about_region(found.region),
        )
