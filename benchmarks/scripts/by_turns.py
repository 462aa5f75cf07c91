"""A scenario's own loop by turns with traceview's blocks, in one process.

    traceview collect --run-to-end benchmarks/scripts/by_turns.py SCENARIO.py

A shared machine changes its speed for seconds at a time: two figures of a step that Python paces
can be compared only where they were taken side by side. So the scenario's own synchronised loop,
in the stance of the block and past traceview's wrapper, runs right after each block that traceview
has closed, for as many steps. Prints the medians of what the scenario itself found, as JSON.
"""

from __future__ import annotations

import json
import runpy
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import torch

SCENARIOS = Path(__file__).resolve().parents[2] / "fixtures" / "scenarios"
sys.path.append(str(SCENARIOS))

import _bare  # noqa: E402 - lies beside the scenarios

FULL_S = 0.05  # shorter blocks are those with which the plan begins
SKIPPED = 3  # steps after a switch

Step = Callable[[], object]
compiled_modules: list[torch.nn.Module] = []


class OwnLoop:
    """Times the scenario's own steps whenever traceview has closed a block."""

    def __init__(self, eager: Step, compiled: Step, device: str) -> None:
        self._steps = {"eager": eager, "compiled": compiled}
        self._device = device
        self.found: dict[str, list[float]] = defaultdict(list)
        self.over = False

    def follow(self) -> None:
        """Listen to the collector's timer and to the end of its plan."""
        timer = sys.modules["_traceview_child.clock"].BlockTimer
        driver = sys.modules["_traceview_child.driver"].Driver
        close, finish = timer.close, driver._finish

        def closed(this, *args, **kwargs):
            block = this._open
            close(this, *args, **kwargs)
            if block is not None and block.keys["pair_index"] is not None:
                self._turn(block.keys["stance"], block.keys["steps"])

        def finished(this, **kwargs):
            finish(this, **kwargs)
            self.over = True

        timer.close, driver._finish = closed, finished

    def _turn(self, stance: str, steps: int) -> None:
        wrapped = [(each, vars(each)["forward"]) for each in compiled_modules]
        for each, call in wrapped:
            object.__setattr__(each, "forward", _behind(call))
        step = self._steps[stance]
        _bare.seconds_of(step, SKIPPED, self._device)
        seconds = _bare.seconds_of(step, steps, self._device)
        for each, call in wrapped:
            object.__setattr__(each, "forward", call)
        if seconds >= FULL_S:
            self.found[stance].append(1e3 * seconds / steps)


def _behind(call: Callable[..., object]) -> object:
    """What torch.compile gave back, behind the wrapper that counts its calls."""
    gates = (cell.cell_contents for cell in call.__closure__ or ())
    return next(gate.compiled for gate in gates if hasattr(gate, "compiled"))


def compare(eager: Step, compiled: Step, device: str) -> None:
    """Stands in for ``_bare.compare``: run compiled steps until the plan is over; print JSON."""
    compiled()
    own = OwnLoop(eager, compiled, device)
    own.follow()
    while not own.over:
        kept = compiled()
    del kept
    if not own.found:
        sys.exit("its steps end in an optimizer, where no other step can run: compare processes")
    medians = {f"{name}_ms": statistics.median(found) for name, found in own.found.items()}
    speedup = medians["eager_ms"] / medians["compiled_ms"]
    print(json.dumps({**medians, "speedup": speedup, "blocks": len(own.found["compiled"])}))


def main() -> None:
    asked = torch.compile

    def remembered(*args, **kwargs):
        compiled_modules.append(asked(*args, **kwargs))
        return compiled_modules[-1]

    torch.compile = remembered
    _bare.compare = compare
    script = sys.argv[1]
    sys.argv[:] = [script, "--bare", *sys.argv[2:]]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
