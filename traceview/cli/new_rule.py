"""The files of a new rule, to be filled in: ``traceview rules new NAME`` in a checkout."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from traceview.errors import RunFolderError, UsageError
from traceview.rules.registry import FAMILIES
from traceview.run import USERS, write_whole

_CODES = Path("tests") / "rules" / "codes.txt"
_MODULES = Path("traceview") / "rules"
_SCENARIOS = Path("fixtures") / "scenarios"
_NAME = re.compile(rf"({FAMILIES})(-[a-z0-9]+)+")

_RULE = '''\
"""
## What it finds
In one sentence, the pattern: what the user's code does.

## Why it costs
What torch has to do because of it.

## Evidence
What is looked for in which table, and where the cost comes from. Information; a warning where ...

## What to do
What to change, and what to do where that is not possible.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_dynamo/config.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import Cost, Finding, Row, Tables, about, code_object, from_row, rows

CODE = "{code}"
#: Tables that it can't do without: `traceview tables RUN` lists them.
NEEDS = frozenset({{"compiles"}})
SEVERITIES = ("info",)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per compile that shows it."""
    for row in rows(tables, "compiles"):
        if not _shows_it(row):
            continue
        yield Finding(
            code=CODE,
            rule="{name}",
            severity="info",
            title="The fact first, and the place",
            explanation="What torch does there, and why.",
            cost=Cost(),
            confidence="heuristic",
            location=code_object(row),
            about=about(row),
            evidence=(from_row(f"compile {{row['compile_id']}}", "compiles", row),),
            what_to_do="What to change.",
        )


def _shows_it(row: Row) -> bool:
    """Fill in: what a row must say to be a finding."""
    return False
'''
_SCRIPT = '''\
"""{summary}"""

import argparse

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return torch.tanh(x * self.scale){mark}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iters", type=int, default=300000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torch.compile(Model(256).eval())
    x = torch.randn(64, 256)
    with torch.no_grad():
        for _ in range(args.iters):
            y = model(x)
    print(f"mean {{y.mean().item():.4f}}")


if __name__ == "__main__":
    main()
'''


def checkout(folder: Path) -> Path:
    """The checkout of traceview that ``folder`` lies in."""
    for root in (folder, *folder.parents):
        if (root / _CODES).is_file() and (root / _MODULES / "registry.py").is_file():
            return root
    raise UsageError(
        f"{folder} is not in a checkout of traceview.",
        "Run it in one; a rule in a package of your own is a module and an entry point "
        "(docs/adding-a-rule.md).",
        slug="no-checkout",
    )


def write(root: Path, name: str) -> list[Path]:
    """Write the files of rule ``name`` below ``root`` and give out its code; what was written."""
    name = name.strip().lower().replace("_", "-")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name} is no name for a rule.",
            f"Write FAMILY-PATTERN, such as gb-item. Families: {FAMILIES.replace('|', ', ')}.",
            slug="wrong-rule-name",
        )
    lines = (root / _CODES).read_text("utf-8").splitlines()
    given = {known: code for code, known in map(str.split, lines)}
    stem = name.replace("-", "_")
    bad, good = (root / _SCENARIOS / group / f"{stem}.py" for group in ("bad", "good"))
    rule = root / _MODULES / f"{stem}.py"
    there = [path for path in (rule, bad, good) if path.exists()]
    if name in given or there:
        what = f"{name} has the code {given[name]}" if name in given else f"{there[0]} exists"
        raise UsageError(f"{what} already.", "Choose another name.", slug="rule-exists")

    # the code after the last of the stage to which most rules of the family belong
    family = name.partition("-")[0]
    stages = Counter(code[:3] for known, code in given.items() if known.startswith(f"{family}-"))
    stage = stages.most_common(1)[0][0]
    code = f"TV{max(int(used[2:]) for used in given.values() if used.startswith(stage)) + 1}"
    bad_mark = f"  # finding: {name}"
    texts = {
        rule: _RULE.format(code=code, name=name),
        bad: _SCRIPT.format(summary="Shows it, as a user would write it.", mark=bad_mark),
        good: _SCRIPT.format(summary="Nearly shows it, and must stay silent.", mark=""),
    }
    ledger = sorted(f"{number} {known}" for known, number in {**given, name: code}.items())
    try:
        for path, text in texts.items():
            write_whole(path, text, USERS)
        write_whole(root / _CODES, "\n".join(ledger) + "\n", USERS)
    except OSError as error:
        fact = f"{error.filename} can't be written: {error.strerror}."
        raise RunFolderError(fact, "Check the checkout's permissions.", slug="no-write") from error
    return [*texts, root / _CODES]
