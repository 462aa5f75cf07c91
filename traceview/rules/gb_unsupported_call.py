"""
## What it finds
A call inside compiled code that Dynamo cannot trace: a C extension, ctypes, a Python builtin, a
library function that it skips, an object of a type that it does not know.

## Why it costs
Dynamo ends the graph there, Python makes the call, and a second graph starts after it. Nothing
fuses across the break, and every call pays for two guarded entries.

## Evidence
A graph break at the line, of a type that no other rule is about: `.item()`, decisions on values,
printing, dynamic shapes, what the script itself disables, and an optimizer's or DDP's own code have
rules of their own. The cost is what the profile shows of the break: Python at the line, and
entering compiled code once more; on a GPU, the time that the device idles meanwhile and while the
value is read. Time that belongs to no line is shared by all lines that break, by how often the code
after each is entered. The cost counts as measured if fusing across the break could add only little
to it.

It is information, not a warning, if that is below 5 % of the compiled step and below 0.05 ms, or
below 1 % of it; also if compiling did not hurt and nothing more runs compiled after the break,
unless the break leaves operators of its function in eager: then these are the cost. If
`fullgraph=True` turns the break into an error, the failed compile is the evidence. That is an error
if it ended the script; otherwise the cost is that every call tries to compile again.

## What to do
Compute once, outside, what does not depend on the tensors. Turn code that works on tensors into an
operator, with `torch.library.custom_op` and a fake implementation: that keeps the graph whole,
though nothing fuses into the operator. A function that Dynamo cannot trace, but that runs the same
tensor operations at every call, needs no operator: `torch._dynamo.nonstrict_trace` around it keeps
one graph into which it fuses. It takes and returns tensors, numbers and containers of them; what
Python computes inside is fixed when it is compiled. `leaf_function` of `torch._dynamo.decorators`
(torch 2.13) is for one that has to run in Python at every call and takes modules: like a custom
operator it needs a fake implementation. Read clocks outside; draw random numbers as tensors. Some
calls have a setting with which Dynamo traces them: torch's hint names it.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.common_graph_breaks.html
- https://docs.pytorch.org/docs/stable/library.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0156.html
- torch/_dynamo/variables/functions.py, `SkipFunctionVariable.call_function`
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from traceview.rules import _breaks
from traceview.rules.kit import Finding, Snippet, Tables, rows, shorten, torch_before

CODE = "TV107"
NEEDS = frozenset({"break_sites"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

_CLOCK = re.compile(r"time\.(?:perf_counter|monotonic|time|process_time|thread_time)(?:_ns)?")
#: The setting that torch's hints say would make it traceable.
_SWITCH = re.compile(r"torch\._dynamo\.config\.(\w+) ?= ?True")
_CUSTOM_OP = """\
@torch.library.custom_op("mylib::my_call", mutates_args=())
def my_call(x: torch.Tensor) -> torch.Tensor:
    ...  # the call, on real tensors

@my_call.register_fake
def _(x):
    return torch.empty_like(x)  # shape, dtype and device of what it returns"""
_NO_CLOCK = """\
if torch.compiler.is_compiling():
    return function(*args, **kwargs)
...  # what reads the clock, in eager only"""
_ONCE = "If it does not depend on the tensors, compute it once, outside the compiled function."


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per line that Dynamo cannot trace."""
    for site in _breaks.resumable(tables, "other"):
        shown = "code that Dynamo cannot trace"
        if site.callee or site.source:
            shown = f"`{site.callee or shorten(site.source, 60)}`"
        # The setting of Dynamo's that torch's hint names.
        hints = (hint for row in site.rows for hint in row["hints"] or ())
        switch = next((found[1] for hint in hints if (found := _SWITCH.search(hint))), None)
        remedy, snippet = _remedy(site, switch, traceable=not torch_before(tables, (2, 7)))

        # torch's own words for it, and its first hint other than to file an issue.
        # Where it is no call that Dynamo gives up (an LSTM as it is looked up), it resumes nowhere.
        row = site.rows[0]
        resumed = any(row["resume_functions"] for row in site.rows) or not rows(tables, "compiles")
        then = "compiles the code after it separately" if resumed else "compiles nothing after it"
        hints = (h for h in row["hints"] or () if "issue" not in h and not h.startswith("If "))
        hint = shorten(next(hints, None), 200).rstrip(".")
        yield _breaks.finding(
            tables,
            site,
            code=CODE,
            rule="gb-unsupported-call",
            title=_breaks.title(site, shown),
            explanation=(
                f"Dynamo cannot trace it ({shorten(row['gb_type'])}), so it ends the graph, lets "
                f"Python run it, and {then}." + (f" torch's hint: {hint}." if hint else "")
            ),
            what_to_do=remedy,
            snippet=snippet,
            remedy=(f"torch._dynamo.config.{switch}=True",) if switch else (),
        )


def _remedy(
    site: _breaks.Site, switch: str | None, *, traceable: bool
) -> tuple[str, Snippet | None]:
    """Python's own library knows no tensors; a call into another package may become an operator.

    ``traceable``: this torch has ``nonstrict_trace``.
    """
    if switch:  # an LSTM, a class made in the function
        setting = f"torch._dynamo.config.{switch} = True"
        return (
            f"Let Dynamo trace it with {setting}; compiling may then take long. Or call it in a "
            "method of its own under @torch.compiler.disable: the graph still ends there, but the "
            "code after it is compiled too.",
            Snippet("python", setting),
        )
    if _CLOCK.fullmatch(site.callee or ""):
        return (
            "Read clocks outside the compiled call (a profiler times its parts), or skip them in "
            "compiled code with is_compiling(): compiled parts have no times of their own.",
            Snippet("python", _NO_CLOCK),
        )
    if site.draws:
        return _breaks.DRAW, None
    if not site.callee or site.callee.partition(".")[0].lstrip("_") in sys.stdlib_module_names:
        return f"{_ONCE} If it is only needed there, call it before or after.", None
    remedy = (
        f"{_ONCE} If it works on tensors, make it a custom operator with a fake implementation: "
        "then the graph continues past it."
    )
    if traceable:
        remedy += (
            " If it runs the same torch operations at every call, torch._dynamo.nonstrict_trace "
            "around it is enough, and they fuse into the graph."
        )
    return remedy, Snippet("python", _CUSTOM_OP)
