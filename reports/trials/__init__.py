"""The results record of trials: on a terminal, as a page, as Markdown and as CSV.

The page needs no network and no script.
"""

from __future__ import annotations

import csv as csv_module
import io
from collections.abc import Iterator

from markupsafe import Markup

from traceview.reports.html import asset, environment
from traceview.reports.markdown import escape, fenced, table
from traceview.reports.phrases import tiny
from traceview.reports.screen import BOLD, DIM, GREEN, PASTE, RED, YELLOW, Line, drawn, line
from traceview.reports.trials import words
from traceview.trials.model import Results
from traceview.words import numbers as fmt
from traceview.words.text import csv_cell, one_line

_TEXT = 20_000
_PACKAGE = "traceview.reports.trials"
_COLUMNS = (
    *("name", "rules", "settings", "verdict", "why", "ratio", "low", "high", "pairs", "apart"),
    *("clock", "baseline", "baseline_ms", "trial_ms", "predicted_ms", "measured_ms"),
    *("compile_seconds", "compiles", "graphs", "graph_breaks", "peak_bytes"),
    *("baseline_peak_bytes", "outputs_agree", "price", "arguments", "compile_seconds_warm"),
    *("autotune_seconds", "recompiles", "cudagraphs", "cudagraphs_why", "break_even_steps"),
    *("max_abs_diff", "rmse", "eager_rmse", "debug", "fixes", "notes", "target"),
    *("eager_ms", "compiled_ms", "speedup"),
)
#: Columns of the environment; each row has them, for tables of several sweeps.
_ENVIRONMENT = (
    *("device_name", "torch_version", "triton_version", "cuda_version", "python_version"),
    *("platform", "cpu_threads"),
)
_LISTS = ("rules", "settings", "price", "arguments", "notes")
_TONES = {"accepted": GREEN, "slower": YELLOW, "changes_results": RED, "failed": RED}
_PATCH_LINES = 40


def html(results: Results) -> str:
    """The whole page, light and dark."""
    style = Markup(asset("report.css") + asset("trials.css", _PACKAGE))
    templates = environment(_PACKAGE, _TEXT, {"words": words, "tiny": tiny})
    return templates.get_template("trials.html.j2").render(r=results, style=style)


def markdown(results: Results) -> str:
    """One table, with what is recommended above it; what was not tried and where it ran below."""
    parts = [f"**{escape(words.headline(results), 400)}**"]
    best = results.recommended
    if best is not None and best.code:
        parts.append(fenced("\n".join(best.code), "python").rstrip())
    cells = [
        {
            "#": str(number),
            "verdict": " ".join(words.VERDICTS[trial.verdict]),
            "remedy": escape(trial.name),
            "arguments": escape(" ".join(trial.arguments)),
            "gain": words.gain(trial),
            "step": escape(words.timed(trial)),
            "saved": escape(words.saved(trial)),
            "compiling": escape(words.compiling(trial)),
            "breaks": words.counts(trial),
            "cudagraphs": escape(words.cudagraphs(trial)),
            "peak memory": fmt.size(trial.peak_bytes) if trial.peak_bytes else "",
            "outputs": words.outputs(trial),
            "error": tiny(trial.rmse) if trial.rmse is not None else "",
            "notes": escape(
                "; ".join(filter(None, (trial.why, *trial.notes, *words.prices(trial))))
            ),
        }
        for number, trial in enumerate(results.trials, 1)
    ]
    heads = [head for head in (cells[0] if cells else ()) if any(row[head] for row in cells)]
    if cells:
        parts.append(table(heads, [[row[head] for head in heads] for row in cells]))
    for why, names in words.untried(results.not_tried):
        parts.append(f"Not tried: {escape(', '.join(names), 400)} ({escape(why, 400)})")
    parts += [escape(note, 400) for note in results.notes]
    known = (f"{k.replace('_', ' ')} {v}" for k, v in results.environment.items() if v)
    parts.append(escape(f"{results.target}: {', '.join(known)}", 400))
    if said := words.as_it_is(results):
        parts.append(escape(f"The script as it is: {said}"))
    return "\n\n".join(parts) + "\n"


def csv(results: Results) -> str:
    """A row a trial (RFC 4180); empty is not recorded, and no cell is taken for a formula."""
    text = io.StringIO()
    rows = csv_module.writer(text)
    columns = (*_COLUMNS, *_ENVIRONMENT)
    rows.writerow(columns)
    shared: dict[str, object] = {"baseline": results.baseline, "target": results.target}
    shared |= {name: getattr(results, name) for name in ("eager_ms", "compiled_ms", "speedup")}
    shared |= {name: results.environment.get(name) for name in _ENVIRONMENT}
    for trial in results.trials:
        low, high = trial.interval or (None, None)
        lists = {n: (" " if n == "arguments" else "; ").join(getattr(trial, n)) for n in _LISTS}
        known = shared | lists | {"low": low, "high": high}
        cells = [known[name] if name in known else getattr(trial, name) for name in columns]
        rows.writerow(map(csv_cell, cells))
    return text.getvalue()


def terminal(results: Results, width: int, color: bool) -> str:
    """Lines of at most ``width`` columns (20 to 100 are used), code and patches apart."""
    return drawn(_lines(results), width, color)


def _lines(results: Results) -> Iterator[Line]:
    best = results.recommended
    mark = "▲" if best else "="
    yield line(f"{mark} {words.headline(results)}", BOLD + (GREEN if best else YELLOW), "", "  ")
    if results.trials:
        yield line("")
    said = [words.VERDICTS[trial.verdict][1] for trial in results.trials]
    verdicts = max(map(len, said), default=0)
    gains = max((len(words.gain(trial)) for trial in results.trials), default=0)
    for number, trial in enumerate(results.trials, 1):
        mark, word = words.VERDICTS[trial.verdict]
        # Columns line up, so the spaces are kept; names are cut rather than wrapped.
        row = f"{number:>2} {mark} {word:<{verdicts}}  {words.gain(trial):<{gains}}  "
        yield row + one_line(words.named(trial), 300), _TONES.get(trial.verdict, ""), "", PASTE
        for text in (words.timed(trial), words.details(trial)):
            if text:
                yield line(text, DIM, "     ", "       ")
        why = [trial.why] if trial.why else []
        prices = (f"Price: {price}" for price in words.prices(trial))
        for text in (*why, *trial.notes, *prices):
            yield line(text, "", "     ", "       ")
    if best:
        yield line("")
        aside = f" ({best.why})" if best.why else ""
        yield line(
            f"Recommended: {' + '.join(best.trials)}, {words.gain(best)}{aside}", BOLD, "", "  "
        )
        for code in best.code:
            yield code, "", "    ", PASTE
        rows = (best.patch or "").rstrip("\n").split("\n")
        for row in rows[:_PATCH_LINES] if best.patch else ():
            yield row, "", "    ", PASTE
        if len(rows) > _PATCH_LINES:
            yield line(f"{len(rows) - _PATCH_LINES} more lines: --json has all.", DIM, "    ")
        for price in best.price:
            yield line(f"Price: {price}", "", "  ", "    ")
    if results.not_tried:
        yield line("")
        yield line("Not tried", BOLD)
    for reason, names in words.untried(results.not_tried):
        yield line(f"{', '.join(names)}: {reason}", "", "  ", "    ")
    for note in results.notes:
        yield line(note, DIM, "", "  ")
