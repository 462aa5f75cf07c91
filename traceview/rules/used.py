"""What of the catalogue a diagnosis rests on: what was ignored, changed or silenced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

import msgspec

from traceview.rules.choice import Changed, Choice, shown
from traceview.rules.ignores import Silenced, UnusedIgnore
from traceview.rules.registry import OWN
from traceview.words.names import at_line

#: Names that a sentence has room for; the JSON has them all.
_FEW = 6


class Added(msgspec.Struct, frozen=True):
    """A rule of another package that was there to be checked."""

    rule: str
    code: str
    origin: str


class RulesUsed(msgspec.Struct, frozen=True):
    """``left_out`` are names, ``refused`` sentences; ``notes`` say all that is worth a word."""

    left_out: tuple[str, ...] = ()
    settings: tuple[Changed, ...] = ()
    silenced: tuple[Silenced, ...] = ()
    unused_ignores: tuple[UnusedIgnore, ...] = ()
    added: tuple[Added, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def rules_used(
    choice: Choice,
    silenced: Sequence[Silenced] = (),
    unused: Sequence[UnusedIgnore] = (),
) -> RulesUsed:
    """The plain data of a choice and of what comments in the source did to its findings."""
    others = [rule for rule in choice.installed.rules if rule.origin != OWN]
    refused = tuple(rule.sentence for rule in choice.installed.refused)
    notes = []
    if choice.left_out:
        chosen = (one.where for one in choice.asked if one.select or one.ignore)
        where = " and ".join(dict.fromkeys(chosen))
        names = _few(rule.name for rule in choice.left_out)
        count = len(choice.left_out)
        were = "1 rule was" if count == 1 else f"{count} rules were"
        notes.append(f"{were} not asked for ({where}): {names}.")
    if choice.changed:
        files = " and ".join(dict.fromkeys(one.where for one in choice.asked if one.settings))
        changes = _few(
            f"{change.rule}.{change.setting} is {shown(change.value)} "
            f"instead of {shown(change.default)}"
            for change in choice.changed
        )
        notes.append(f"Settings changed ({files}): {changes}.")
    if silenced:
        found = "1 finding is" if len(silenced) == 1 else f"{len(silenced)} findings are"
        places = _few(f"{row.rule} at {_place(row)}" for row in silenced)
        notes.append(f"{found} silenced by comments in the source: {places}.")
    notes += [f"{_place(row)}: `{row.comment}` {row.why}" for row in unused[:_FEW]]
    if len(unused) > _FEW:
        notes.append(f"{len(unused) - _FEW} more comments in the source silence nothing.")
    return RulesUsed(
        left_out=tuple(rule.name for rule in choice.left_out),
        settings=choice.changed,
        silenced=tuple(silenced),
        unused_ignores=tuple(unused),
        added=tuple(Added(rule.name, rule.code, rule.origin) for rule in others),
        refused=refused,
        notes=(*notes, *refused),
    )


def _place(row: Silenced | UnusedIgnore) -> str:
    return at_line(PurePath(row.file).name, row.line)


def _few(words: Iterable[str]) -> str:
    found = list(words)
    more = f" and {len(found) - _FEW} more" if len(found) > _FEW else ""
    return ", ".join(found[:_FEW]) + more
