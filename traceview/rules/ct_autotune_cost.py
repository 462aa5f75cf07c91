"""
## What it finds
Autotuning that takes much of the compile time.

## Why it costs
For every matrix product and convolution torch compiles several kernels, runs each of them and takes
the fastest. That happens once per shape, and at every start unless a cache is kept.

## Evidence
The compiler's own spans of autotuning (compiling the candidates and timing them) took more than a
quarter of the compile time, where a mode or an option asked for it. What is done once for an empty
cache folder, such as compiling headers, is left out of the compile time. The tables that torch
printed show which kernel won: where that is the library's own, autotuning has changed nothing.

A warning where it took at least a quarter of a job whose length is known. Otherwise information.
What the chosen kernels save at every step is part of the step's time.

## What to do
Keep the cache between starts: the choices are kept with it. Where the library's kernels win, leave
autotuning out, and compare with `mode="default"`.

## Settings
- `least_seconds`: shorter autotuning is not reported
- `least_share`: smaller shares of the compile time are not reported

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- torch/_inductor/select_algorithm.py, `AlgorithmSelectorCache`
- torch/_inductor/config.py, `max_autotune`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.compiler.first_calls import outermost_autotuning
from traceview.rules import _starts
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Tables,
    about_region,
    compile_call,
    first_rank,
    from_row,
    percent,
    rows,
    seconds,
    shorten,
)

CODE = "TV606"
NEEDS = frozenset({"compile_phases", "compiles", "regions"})
SEVERITIES = ("warning", "info")

#: Less than a second is not worth a finding.
LEAST_SECONDS = 1.0
#: A quarter of the compile.
LEAST_SHARE = 0.25
_MODES = ("max-autotune", "max-autotune-no-cudagraphs")
_SETTINGS = (
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_pointwise",
    "coordinate_descent_tuning",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM",
)


def check(
    tables: Tables, *, least_seconds: float = LEAST_SECONDS, least_share: float = LEAST_SHARE
) -> Iterator[Finding]:
    """At most one finding: all autotuning of the run."""
    outermost = outermost_autotuning(first_rank(rows(tables, "compile_phases")))
    spent = sum(row["duration_us"] or 0.0 for row in outermost) / 1e6
    compiles = first_rank(rows(tables, "compiles"))
    whole = sum(row["duration_us"] or 0.0 for row in compiles) / 1e6
    once = _starts.once_seconds(tables, {row["compile_key"] for row in compiles})
    if not whole or spent < max(least_seconds, least_share * (whole - once)):
        return
    asking = (
        row
        for row in first_rank(rows(tables, "regions"))
        if row["mode"] in _MODES
        or any(_starts.options(row).get(name) is True for name in _SETTINGS)
    )
    region = next(asking, None)
    place = compile_call(region) if region else _starts.setting_line(tables, *_SETTINGS)
    if place is None:
        return  # no setting asks for it: what is left is small, and not the user's choice

    best = first_rank(rows(tables, "autotune_choices", is_best=True))
    library = sum(row["backend"] == "aten" for row in best)
    bought = f" The library's own kernel won {library} of {len(best)} times." if best else ""
    if best and library == len(best):
        bought = " The library's own kernel won each time: it would have been used anyway."
    best.sort(key=lambda row: -((row["benchmark_s"] or 0.0) + (row["precompile_s"] or 0.0)))
    timed = f"{seconds(spent)} of autotuning ({percent(spent / whole)} of compile time)"
    yield Finding(
        code=CODE,
        rule="ct-autotune-cost",
        severity=_starts.severity(tables, spent),
        title=f"Autotuning takes {seconds(spent)} of {seconds(whole)} of compile time",
        explanation=f"torch compiled several kernels for each operation and timed them.{bought}",
        cost=Cost(seconds=spent, about="autotuning, at every start without a warm cache"),
        confidence="measured",
        location=place,
        evidence=(
            Evidence(timed, "compile_phases"),
            *(
                from_row(
                    f"{row['op']}({shorten(row['shapes'], 60)}): "
                    f"`{shorten(row['choice'], 60)}` won",
                    "autotune_choices",
                    row,
                )
                for row in best[:3]
            ),
        ),
        what_to_do=(
            "Keep TORCHINDUCTOR_CACHE_DIR between starts, so that torch chooses only once. Or "
            "compile with the default mode and compare the step's time: autotuning pays only if "
            "it makes the step faster."
        ),
        remedy=("mode=default",) if region and region["mode"] in _MODES else (),
        about=about_region(region),
    )
