"""The state of random generators, kept and put back."""

from __future__ import annotations

import random
import sys
from typing import Any


class Seeds:
    """The state of every random generator that scripts use, as it was when this was made."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._numpy = sys.modules.get("numpy.random")
        self._states = self._now()

    def restore(self) -> None:
        """Back to it."""
        host, devices, python, numpy = self._states
        self._torch.set_rng_state(host)
        if devices:
            self._torch.cuda.set_rng_state_all(devices)
        random.setstate(python)
        if self._numpy is not None:
            self._numpy.set_state(numpy)

    def moved(self) -> bool:
        """Whether torch has drawn a random number since."""
        host, devices, *_ = self._now()
        pairs = zip((host, *devices), (self._states[0], *self._states[1]), strict=True)
        return any(not self._torch.equal(now, then) for now, then in pairs)

    def _now(self) -> tuple[Any, list[Any], Any, Any]:
        cuda = self._torch.cuda
        devices = cuda.get_rng_state_all() if cuda.is_initialized() else []
        numpy = self._numpy.get_state() if self._numpy is not None else None
        return self._torch.get_rng_state(), devices, random.getstate(), numpy
