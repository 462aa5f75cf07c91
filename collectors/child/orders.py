"""What a measuring plan is told at a step edge, and what it may order there."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Literal

Stance = Literal["eager", "compiled"]
Phase = Literal["cold", "warmup", "block", "profile", "tail"]
Purpose = Literal["time", "lines"]


@dataclass(frozen=True)
class Moment:
    """What is known at a step edge. ``step_ms``: latest estimate by stance, absent if unknown."""

    step: int
    seconds: float
    compiles: int
    step_ms: Mapping[str, float]
    step_kind: Literal["call", "optimizer"] = "call"
    device: bool = False
    profiler_stays: bool = False
    calm_steps: int = 3


@dataclass(frozen=True)
class Settings:
    """What the user and the parent chose. ``fixed``: several ranks, all follow step numbers."""

    stances: tuple[Stance, ...] = ("eager", "compiled")
    steps: int | None = None
    blocks: int = 12
    profile: bool = True
    fixed: bool = False


@dataclass(frozen=True)
class Enter:
    """A phase begins."""

    phase: Phase
    detail: str | None = None


@dataclass(frozen=True)
class Take:
    """Run from here on in this stance."""

    stance: Stance


@dataclass(frozen=True)
class Wait:
    """Let ``steps`` steps pass; ``watch``: with a clock around every step and call."""

    steps: int
    watch: bool = False


@dataclass(frozen=True)
class Steady:
    """Compiling has gone quiet, or will not."""

    never_quiet: bool


@dataclass(frozen=True)
class OpenBlock:
    """The first edge of a timed block; ``pair`` None: it stands beside a profiler window."""

    stance: Stance
    pair: int | None
    steps: int
    skipped: int


@dataclass(frozen=True)
class CloseBlock:
    """The last edge of the block."""


@dataclass(frozen=True)
class PrepareWindow:
    """Attach the profiler; it writes nothing before the window opens."""

    stance: Stance


@dataclass(frozen=True)
class OpenWindow:
    """Start the profiler here: for several steps as they are, or for one with its lines marked."""

    stance: Stance
    purpose: Purpose = "time"


@dataclass(frozen=True)
class CloseWindow:
    """Stop it and write the trace."""


@dataclass(frozen=True)
class LeaveOut:
    """Say what is not done, and why."""

    what: str
    why: str


Order = (
    Enter | Take | Wait | Steady | OpenBlock | CloseBlock
    | PrepareWindow | OpenWindow | CloseWindow | LeaveOut
)  # fmt: skip
Steps = Generator[Order, Moment, Moment]
