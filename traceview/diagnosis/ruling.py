"""The rules at work on one run: what they found, could not check, and what the user silenced.

A rule knows tables. What it says is made to fit the run here: commands name the run's own target,
lines get their functions, and a change of one line becomes a diff that ``patch`` and git can apply.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Mapping
from difflib import unified_diff
from functools import cache
from pathlib import PurePath

import msgspec
from msgspec.structs import replace

from traceview.derive.syntax import function_at, syntax_tree
from traceview.diagnosis.excerpts import source_reader
from traceview.diagnosis.model import NotChecked
from traceview.reading import of_chosen
from traceview.rules import run_rules
from traceview.rules.choice import Choice, choose
from traceview.rules.finding import Finding, Location, Snippet
from traceview.rules.ignores import silence
from traceview.rules.used import RulesUsed, rules_used
from traceview.run import Manifest, Run
from traceview.tables import Tables

#: Tables of figures per step, whose ``ms`` is null where no step is marked.
_PER_STEP = ("accounting", "account_details", "kernel_groups", "matched_kernels", "kernel_limits")
_SCRIPT = re.compile(r"\bSCRIPT\b")
#: Lines around a change: git wants one, and the report shows more of the source anyway.
_AROUND = 1
_NO_NEWLINE = "\n\\ No newline at end of file\n"

Reader = Callable[[str], str | None]


class Ruling(msgspec.Struct, frozen=True):
    """``follows``: rule → the rules whose findings are its cause; ``explains``: → effects."""

    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    used: RulesUsed
    follows: Mapping[str, frozenset[str]]
    explains: Mapping[str, frozenset[str]]


def ruling(run: Run, tables: Tables, choice: Choice | None = None) -> Ruling:
    """What the rules of ``choice`` (default: all of our own) say of ``run``."""
    choice, manifest = choice or choose(), run.manifest
    read = source_reader(run, tables)
    measured = of_chosen(tables)
    # Rows per step whose time is not known, as no step is marked, are no evidence.
    untimed = [n for n in _PER_STEP if measured.has(n) and measured[n]["ms"].has_nulls()]
    if untimed:
        measured = measured.copy()
    for name in untimed:
        measured.put(name, measured[name].drop_nulls("ms"))
    found, missing = run_rules(measured, choice.rules)
    unchecked = {item.rule for item in missing}
    kept, silenced, unused = silence(
        found,
        tables["sources"]["file"].drop_nulls().unique().sort(),
        read,
        choice.installed.rules,
        {rule.name for rule in choice.rules} - unchecked,
    )
    named = with_functions(read)
    return Ruling(
        tuple(
            placed(with_target(named(finding), manifest), read, manifest.cwd) for finding in kept
        ),
        tuple(
            NotChecked(
                item.rule, item.code, item.needs, item.command and of_target(item.command, manifest)
            )
            for item in missing
        ),
        rules_used(choice, silenced, unused),
        {rule.name: rule.follows for rule in choice.rules},
        {rule.name: rule.explains for rule in choice.rules},
    )


def of_target(command: str, manifest: Manifest) -> str:
    """``command`` with the target, its arguments and its ranks in place of the word SCRIPT."""
    if not manifest.target or manifest.target_kind == "logs":  # the logs of a job are no script
        return command
    if manifest.nproc > 1:
        ranks = f"--nproc-per-node {manifest.nproc}"
        command = command.replace("traceview diagnose", f"traceview diagnose {ranks}")
        command = command.replace("python SCRIPT", f"torchrun {ranks} SCRIPT")
    module = ["-m"] if manifest.target_kind == "module" else []
    target = shlex.join([*module, *manifest.target])
    return _SCRIPT.sub(lambda _: target, command)


def with_target(finding: Finding, manifest: Manifest) -> Finding:
    """``finding`` with its commands about the run's own target."""
    snippet = finding.snippet
    if snippet is None or snippet.language != "shell":
        return finding
    return replace(finding, snippet=replace(snippet, text=of_target(snippet.text, manifest)))


def with_functions(read: Reader) -> Callable[[Finding], Finding]:
    """A function that names the functions of a finding's lines where its rule knows lines alone.

    ``read``: file name → text, None where the run has no copy of it.
    """

    @cache
    def tree(file: str) -> ast.Module | None:
        return syntax_tree(read(file) or "")

    def fill(place: Location) -> Location:
        known = None if place.function else tree(place.file)
        return replace(place, function=function_at(known, place.line)) if known else place

    def filled(finding: Finding) -> Finding:
        place = finding.location and fill(finding.location)
        return replace(finding, location=place, also_at=tuple(map(fill, finding.also_at)))

    return filled


def placed(finding: Finding, read: Reader, folder: str) -> Finding:
    """``finding`` with its change of one line as a unified diff; paths are relative to ``folder``.

    Rules write ``- old`` and ``+ new`` without indentation. It stays as it is where the run has no
    copy of the file or the line is not in it; a change that would leave no Python is not shown.
    """
    snippet, place = finding.snippet, finding.location
    first, *others = snippet.text.split("\n") if snippet and snippet.language == "diff" else [""]
    change = first.startswith("- ") and others and all(row.startswith("+ ") for row in others)
    text = read(place.file) if change and place else None
    if place is None or text is None:
        return finding
    old, new = first[2:], [row[2:] for row in others]
    before = _lines(text)
    # Where the old line stands: where the finding is, or else in one line of the file only.
    found = [index for index, line in enumerate(before) if line.strip() == old]
    if place.line - 1 in found:
        found = [place.line - 1]
    if len(found) != 1:
        return finding

    index, line = found[0], before[found[0]]
    indent = line[: len(line) - len(line.lstrip())]
    if indent.startswith("\t"):  # where the file has tabs, so has the change
        new = ["\t" * ((len(part) - len(part.lstrip())) // 4) + part.lstrip() for part in new]
    added = [f"{indent}{part}\n" for part in new]
    if not line.endswith("\n"):
        added[-1] = added[-1][:-1]
    after = "".join([*before[:index], *added, *before[index + 1 :]])
    if syntax_tree(text) and not syntax_tree(after):
        return replace(finding, snippet=None)

    path = PurePath(place.file)
    inside = folder and path.is_relative_to(folder)
    name = (path.relative_to(folder) if inside else PurePath(path.name)).as_posix()
    return replace(finding, snippet=Snippet("diff", unified(text, after, name)))


def unified(before: str, after: str, name: str) -> str:
    """The unified diff of two texts of one file, without the last end of line."""
    rows = unified_diff(_lines(before), _lines(after), name, name, n=_AROUND)
    diff = "".join(row if row.endswith("\n") else row + _NO_NEWLINE for row in rows)
    return diff.rstrip("\n")


def _lines(text: str) -> list[str]:
    """Each with its end, as Python and ``patch`` count them: form feeds end none."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])
