"""The results record of trials: plain data that the page and the table are made of.

Contract: docs/try.md and ``traceview/trials/schema.json``; ``FORMAT`` is raised when a key changes
its meaning or goes away. Every figure says its unit in its name; None means "not recorded".
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from traceview import contracts
from traceview.errors import NothingToAnalyse

FORMAT = 1
RESULTS = "trials.json"
Word = Literal["accepted", "no_gain", "slower", "changes_results", "failed", "not_applicable"]
VERDICTS: tuple[Word, ...] = get_args(Word)
#: What trials are compared with.
Baseline = Literal["compiled", "eager"]
#: What a remedy does away with: wrong results of compiled code, or an error that ends the script.
Fixes = Literal["results", "failure"]
#: Whether calls replay a cudagraph; ``skipped``: they were to, and torch left it.
Cudagraphs = Literal["yes", "skipped", "no"]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One remedy that was tried, and what came of it.

    ``ratio``: median over pairs of blocks of the baseline's over the trial's milliseconds per
    step, so above 1 the trial is faster; ``interval`` is its 95 % bootstrap interval.
    ``predicted_ms`` and ``measured_ms``: what a step saves, as the finding puts it (None: no
    finding gives a figure) and as the medians say. ``outputs_agree`` is None where no output could
    be compared. ``price``: what the remedy costs in something other than time.

    ``apart``: it ran in processes of its own. Then ``pairs`` is their number, with as many of the
    script as it is, the ratio is that of their medians, and the interval its range.

    ``arguments`` are those of the script that this trial is with. ``compile_seconds`` contain
    ``autotune_seconds``; ``compile_seconds_warm``: once more, with what the caches hold by then.
    ``break_even_steps``: the number after which the compile seconds have paid off against eager.
    ``max_abs_diff`` is the largest difference from eager of the output whose error is largest for
    its size, ``rmse`` its error against float64, ``eager_rmse`` eager's own.

    ``fixes``: compiled results are wrong without it and right with it, or the script fails without
    it and runs with it; it is accepted for that, however fast it is. Of a script that fails
    compiled, the ratio is against eager.
    """

    name: str
    rule: str | None
    rules: tuple[str, ...]
    settings: tuple[str, ...]
    patch: str | None
    verdict: Word
    why: str | None
    ratio: float | None
    interval: tuple[float, float] | None
    pairs: int
    clock: str | None
    baseline_ms: float | None
    trial_ms: float | None
    predicted_ms: float | None
    measured_ms: float | None
    compile_seconds: float | None
    compiles: int | None
    graphs: int | None
    graph_breaks: int | None
    peak_bytes: int | None
    baseline_peak_bytes: int | None
    outputs_agree: bool | None
    price: tuple[str, ...]
    apart: bool = False
    arguments: tuple[str, ...] = ()
    compile_seconds_warm: float | None = None
    autotune_seconds: float | None = None
    recompiles: int | None = None
    cudagraphs: Cudagraphs | None = None
    cudagraphs_why: str | None = None
    break_even_steps: int | None = None
    max_abs_diff: float | None = None
    rmse: float | None = None
    eager_rmse: float | None = None
    debug: str | None = None
    fixes: Fixes | None = None
    notes: tuple[str, ...] = ()

    def is_open(self, ratio: float) -> bool:
        """Whether it is accepted, but may gain less than that, or not, but seems to gain more."""
        if self.ratio is None or self.interval is None or self.fixes:
            return False
        if self.verdict == "accepted":
            return self.interval[0] < ratio
        return self.verdict == "no_gain" and self.ratio >= ratio


class Recommended(msgspec.Struct, frozen=True, kw_only=True):
    """What to change: ``settings``, the ``code`` that sets them, and a ``patch``.

    ``ratio`` and ``interval`` are those of all of it together, as it was measured. Over several
    arguments of the script they are the geometric mean, and the lowest and the highest end.
    """

    trials: tuple[str, ...]
    ratio: float
    interval: tuple[float, float]
    settings: tuple[str, ...]
    code: tuple[str, ...]
    patch: str | None
    price: tuple[str, ...]
    why: str
    fixes: Fixes | None = None


class NotTried(msgspec.Struct, frozen=True, kw_only=True):
    """A remedy that has no verdict, or a finding without a remedy that can be tried."""

    name: str
    rules: tuple[str, ...]
    settings: tuple[str, ...]
    patch: str | None
    why: str
    arguments: tuple[str, ...] = ()


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that ``traceview try`` and ``traceview sweep`` report.

    ``eager_ms``, ``compiled_ms`` and ``speedup``: of the script as it is, by the diagnosis before.
    """

    target: str
    created: str | None
    traceview: str
    baseline: Baseline
    budget_seconds: float
    environment: dict[str, str | None]
    trials: tuple[Trial, ...]
    recommended: Recommended | None
    not_tried: tuple[NotTried, ...]
    notes: tuple[str, ...] = ()
    eager_ms: float | None = None
    compiled_ms: float | None = None
    speedup: float | None = None
    speedup_interval: tuple[float, float] | None = None


to_json, schema, write_schema = contracts.of(Results, FORMAT, "traceview trials", __file__)


def from_json(data: object) -> Results:
    """The results that ``to_json`` made ``data`` of; NothingToAnalyse for anything else."""
    remedy = "Run `traceview try` again."
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        fact = f"{RESULTS} is not a record of trials in format {FORMAT}."
        raise NothingToAnalyse(fact, remedy, slug="no-trials")
    try:
        return msgspec.convert({k: v for k, v in data.items() if k != "format"}, Results)
    except msgspec.ValidationError as error:
        fact = f"{RESULTS} is not a record of trials ({error})."
        raise NothingToAnalyse(fact, remedy, slug="no-trials") from error
