"""What the parent asks for: the keys of ``child.json`` (docs/run-folder.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

#: Seconds in which compiled results are compared with eager's at the most.
COMPARING_S = 120.0
Mode = Literal["paired", "compiled", "eager", "trials"]


@dataclass(frozen=True)
class Config:
    """One pass's orders; unknown keys are left out, missing ones have these defaults."""

    run: Path
    raw: Path
    pass_name: str = "cold"
    mode: Mode = "paired"
    without_eager: str | None = None
    nproc: int = 1
    steps: int | None = None
    blocks: int | None = None
    run_to_end: bool = False
    stop_after_steps: int | None = None
    profile: bool = True
    compare_outputs: bool = False
    bisect_s: float = 0.0
    record_mb: int = 0
    record_steps: int = 0
    nudged: bool = False
    trials: tuple[Mapping[str, Any], ...] = ()
    throughout: bool = False
    check_results: bool = False
    trial_seconds: float = 0.0
    trial_baseline: Literal["eager", "compiled"] = "compiled"
    trial_caches: str | None = None
    trial_debug: str | None = None
    compile_target: str | None = None
    compile_options: Mapping[str, Any] = field(default_factory=dict)
    after_steps: int = 0
    serve_calls: int = 0
    serve_seconds: float = 0.0
    timeout_s: float | None = None
    user_logs: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    script_root: str | None = None

    @property
    def stances(self) -> tuple[Literal["eager", "compiled", "trial"], ...]:
        """Those that take turns."""
        if self.mode == "trials":
            return self.trial_baseline, "trial"
        return ("eager", "compiled") if self.mode == "paired" else (self.mode,)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Config:
        """From the object in ``child.json``; KeyError without ``run`` or ``raw``."""
        given = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        given |= {name: Path(data[name]) for name in ("run", "raw")}
        given |= {
            name: tuple(data.get(name) or ()) for name in ("user_logs", "variables", "trials")
        }
        return cls(**given | {"pass_name": data.get("pass", "cold")})


def is_first_rank() -> bool:
    """Whether this process is to do what one rank does for all."""
    return os.environ.get("RANK", "0") == "0"
