"""The scripts of ``evaluation/`` with their expected answers, and findings laid beside these."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomllib

EVALUATION = Path(__file__).resolve().parents[1] / "evaluation"

Finding = dict[str, Any]


@dataclass
class Script:
    """One script with its expected answers, as ``expected.toml`` has them."""

    name: str
    group: str
    seen: bool
    length: str  # the option (or variable, or "argv") that says how long it runs
    few: int  # of these, for a quick look
    steps_each: float = 1.0  # steps of traceview's in one of these
    first: int = 1  # so many of the causes may stand first
    cured: str = ""  # the rule whose advice the twin follows, if not a first cause's
    unit: str = ""  # of what the twin gains, where no diagnosis is there to say it
    causes: list[dict[str, Any]] = field(default_factory=list)
    why: str = ""
    folder: Path = EVALUATION

    @property
    def on_gpu(self) -> bool:
        """Whether it needs a GPU: then time is the wall's, since the device sets the pace."""
        return self.folder.name == "gpu"

    @property
    def main(self) -> Path:
        folder = self.folder / "scripts" / self.name
        return folder / "main.py" if folder.is_dir() else folder.with_suffix(".py")

    @property
    def twin(self) -> Path | None:
        path = self.main.with_suffix(".fixed.py")
        return path if path.exists() else None

    @property
    def cured_rules(self) -> set[str]:
        """Rules whose finding says what the twin saves."""
        if self.cured:
            return {self.cured}
        return {rule for cause in self.causes[: self.first] for rule in as_list(cause["rules"])}

    def command(self, path: Path, count: int) -> tuple[list[str], dict[str, str]]:
        """Arguments and environment that run it for ``count`` of its own units."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        words = [sys.executable, str(path)]
        if self.length == "argv":
            words.append(str(count))
        elif self.length.startswith("--"):
            words += [self.length, str(count)]
        else:
            environment[self.length] = str(count)
        return words, environment


def scripts(
    names: list[str], group: str | None, part: str | None, *, gpu: bool = False
) -> Iterator[Script]:
    """Those asked for, or all; ``gpu``: those that need one."""
    folder = EVALUATION / "gpu" if gpu else EVALUATION
    expected = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
    for name, entry in expected.items():
        script = Script(name=name, folder=folder, **entry)
        if names and name not in names:
            continue
        if group in (None, script.group) and part in (None, "seen" if script.seen else "unseen"):
            yield script


def stored(keep: Path, name: str) -> dict[str, Any]:
    """What an earlier run left in ``keep``; nothing where it left none or failed."""
    try:
        found = json.loads((keep / name).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def all_of(findings: list[Finding]) -> Iterator[Finding]:
    """Causes and, under them, what follows."""
    for finding in findings:
        yield finding
        yield from all_of(finding["symptoms"])


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def fits(finding: Finding, cause: dict[str, Any]) -> bool:
    return finding["rule"] in as_list(cause["rules"])


def percent(values: list[bool]) -> str:
    if not values:
        return "none"
    return f"{sum(values)} of {len(values)} ({100 * sum(values) / len(values):.1f} %)"
