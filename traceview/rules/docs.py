"""The rules' pages, made of their docstrings: ``python -m traceview.rules.docs`` writes docs/rules.

Run it where ``docs/`` is, or name that folder.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from traceview.errors import UsageError
from traceview.rules.choice import Choice, shown
from traceview.rules.needs import in_words
from traceview.rules.registry import OWN, SETTINGS, Rule, Setting, catalogue

INDEX = "rules.md"
FOLDER = "rules"

_INTRODUCTION = """\
# Rules

Made of the rules' own docstrings by `python -m traceview.rules.docs`. `traceview explain gb-item`
prints one of them, `traceview rules` lists them. Codes and names are stable.

[Choosing rules](choosing-rules.md) says how to leave some out, change their thresholds and silence
a finding at its line; [adding a rule](adding-a-rule.md) how to write one.
"""
_LEFT_OUT = """\
## Left out

`mode="max-autotune"` on a GPU with fewer than 68 multiprocessors: torch keeps the library's matrix
products there, and says so itself ("Not enough SMs to use max_autotune_gemm mode"). There is no
rule for it, because it can be seen on such a GPU only, and all GPU recordings that prove the rules
here come from an H200, which has 132.
"""
#: Codes by stage: what their first digit means.
_STAGES = {
    "TV1": "Graph capture",
    "TV2": "Guards and recompiles",
    "TV3": "AOTAutograd and guards at run time",
    "TV4": "Inductor, kernels and memory",
    "TV5": "Launches, idle time and cudagraphs",
    "TV6": "Compile time and caches",
    "TV7": "Numerics",
    "TV8": "Ranks",
    "TV9": "The measurement itself",
}


def page(rule: Rule, choice: Choice | None = None) -> str:
    """One rule as Markdown, headed by its name; ends with a newline.

    With a ``choice``, its settings are those in force there.
    """
    facts = [f"Severity: {_grades(rule)}.", f"Reads {in_words(sorted(rule.needs))[0]}."]
    if rule.gpu_only:
        facts.append("Only where the steps run on a GPU.")
    if rule.follows:
        causes = ", ".join(f"`{name}`" for name in sorted(rule.follows))
        facts.append(f"About the same function, a finding of {causes} is its cause.")
    if rule.origin != OWN:
        facts.append(f"A rule of {rule.origin}.")
    defaults: dict[str, Setting] = {}
    if choice is not None:
        rule = next(one for one in (*choice.rules, *choice.left_out) if one.name == rule.name)
        defaults = {one.setting: one.default for one in choice.changed if one.rule == rule.name}
        if rule in choice.left_out:
            facts.append("It is left out here: not asked for, or ignored.")
    parts = [f"# {rule.name} ({rule.code})", "\n".join(facts)]
    settings = rule.sections.get(SETTINGS) or "\n".join(f"- `{name}`:" for name in rule.settings)

    def valued(found: re.Match[str]) -> str:
        name = found[1]
        default = f" (its default is {shown(defaults[name])})" if name in defaults else ""
        return f"- `{name}` = {shown(rule.settings[name])}{default}:"

    names = "|".join(map(re.escape, rule.settings)) or "(?!)"
    settings = re.sub(rf"^- `({names})`:", valued, settings, flags=re.MULTILINE)
    sections = {**rule.sections, SETTINGS: settings}
    parts += [f"## {section}\n\n{text}" for section, text in sections.items() if text]
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """A table of all rules, by stage, each leading to its page."""
    parts = [_INTRODUCTION]
    for start, stage in _STAGES.items():
        rows = [
            f"| {rule.code} | [{rule.name}]({FOLDER}/{rule.name}.md) | {_grades(rule)} "
            f"| {rule.summary} |"
            for rule in catalogue()
            if rule.code.startswith(start)
        ]
        if rows:
            head = ["| code | rule | severity | finds |", "| --- | --- | --- | --- |"]
            parts.append("\n".join([f"## {stage}", "", *head, *rows]) + "\n")
    return "\n".join([*parts, _LEFT_OUT])


def pages() -> dict[str, str]:
    """Every page by its path below docs/."""
    return {INDEX: index()} | {f"{FOLDER}/{rule.name}.md": page(rule) for rule in catalogue()}


def write(docs: Path) -> None:
    """Write every page below the folder ``docs``, and take away those of rules that are gone."""
    if not docs.is_dir():
        fact = f"There is no folder {docs}."
        raise UsageError(fact, "Name the folder that holds rules.md.", slug="no-docs")
    made = pages()
    (docs / FOLDER).mkdir(exist_ok=True)
    for old in (docs / FOLDER).glob("*.md"):
        if f"{FOLDER}/{old.name}" not in made:
            old.unlink()
    for name, text in made.items():
        (docs / name).write_text(text, encoding="utf-8")


def _grades(rule: Rule) -> str:
    *others, last = rule.severities
    return f"{', '.join(others)} or {last}" if others else last


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
