"""The results record on a terminal: verdict, gain, remedy; then what to paste."""

from __future__ import annotations

from collections.abc import Iterator

from traceview.reports.trials import words
from traceview.trials.model import Results, Trial
from traceview.words.text import clean, one_line, wrap

_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_RED, _GREEN, _YELLOW = "\x1b[31m", "\x1b[32m", "\x1b[33m"
_TONES = {
    "accepted": _GREEN,
    "slower": _YELLOW,
    "changes_results": _RED,
    "failed": _RED,
}
_NARROWEST, _WIDEST = 20, 100
_PATCH_LINES = 40

Line = tuple[str, str, str, str]


def render(results: Results, width: int, color: bool) -> str:
    """Lines of at most ``width`` columns (20 to 100 are used), code and patches apart."""
    columns = max(_NARROWEST, min(width, _WIDEST))
    lines: list[str] = []
    for text, codes, indent, hanging in _lines(results):
        # What is to be pasted keeps its spaces and its length.
        pasted = hanging == "paste"
        made = (
            [indent + clean(text)]
            if pasted
            else wrap(one_line(text, 500), columns, indent, hanging)
        )
        lines += [f"{codes}{line}{_RESET}" if color and codes else line for line in made]
    return "\n".join(lines)


def _line(text: str, codes: str = "", indent: str = "", hanging: str = "") -> Line:
    return text, codes, indent, hanging or indent


def _lines(results: Results) -> Iterator[Line]:
    best = results.recommended
    mark = "▲" if best else "="
    yield _line(
        f"{mark} {words.headline(results)}", _BOLD + (_GREEN if best else _YELLOW), "", "  "
    )
    if results.trials:
        yield _line("")
    said = [words.VERDICTS[trial.verdict][1] for trial in results.trials]
    verdicts = max(map(len, said), default=0)
    gains = max((len(words.gain(trial)) for trial in results.trials), default=0)
    for number, trial in enumerate(results.trials, 1):
        yield from _trial(number, trial, verdicts, gains)
    if best:
        yield _line("")
        why = f" ({best.why})" if best.why else ""
        yield _line(
            f"Recommended: {' + '.join(best.trials)}, {words.gain(best)}{why}", _BOLD, "", "  "
        )
        for line in best.code:
            yield line, "", "    ", "paste"
        rows = (best.patch or "").rstrip("\n").split("\n")
        for row in rows[:_PATCH_LINES] if best.patch else ():
            yield row, "", "    ", "paste"
        if len(rows) > _PATCH_LINES:
            yield _line(f"{len(rows) - _PATCH_LINES} more lines: --json has all.", _DIM, "    ")
        for price in best.price:
            yield _line(f"Price: {price}", "", "  ", "    ")
    if results.not_tried:
        yield _line("")
        yield _line("Not tried", _BOLD)
    for why, names in words.untried(results.not_tried):
        yield _line(f"{', '.join(names)}: {why}", "", "  ", "    ")
    for note in results.notes:
        yield _line(note, _DIM, "", "  ")


def _trial(number: int, trial: Trial, verdicts: int, gains: int) -> Iterator[Line]:
    mark, word = words.VERDICTS[trial.verdict]
    # Columns line up, so the spaces are kept; names are cut rather than wrapped.
    row = f"{number:>2} {mark} {word:<{verdicts}}  {words.gain(trial):<{gains}}  "
    yield row + one_line(words.named(trial), 300), _TONES.get(trial.verdict, ""), "", "paste"
    for text in (words.timed(trial), words.details(trial)):
        if text:
            yield _line(text, _DIM, "     ", "       ")
    if trial.why:
        yield _line(trial.why, "", "     ", "       ")
    for note in trial.notes:
        yield _line(note, "", "     ", "       ")
    for price in words.prices(trial):
        yield _line(f"Price: {price}", "", "     ", "       ")
