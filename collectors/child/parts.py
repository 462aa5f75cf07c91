"""The collector's parts, made once torch is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .clock import BlockTimer, gpu_in_use
from .compiles import Compiles
from .frames import Frames
from .memory import Memory
from .recorder import Recorder
from .sources import Sources
from .stances import Stances
from .state import Control
from .window import Window


@dataclass
class Parts:
    """What the driver works with."""

    torch: Any
    control: Control
    recorder: Recorder
    frames: Frames
    sources: Sources
    stances: Stances
    memory: Memory
    timer: BlockTimer
    window: Window
    compiles: Compiles

    def look_at_device(self) -> bool:
        """Time by device events from here on if the script uses a GPU; whether it does."""
        device = gpu_in_use(self.torch)
        self.timer.device = self.memory.device = self.window.device = device
        return device
