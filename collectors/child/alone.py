"""Does a function that a trial compiles as well give what it gives in eager?

At the process's end, as `traceview.collectors.child.trial` does it for what the script compiles.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .config import COMPARING_S
from .driver import Parts
from .remedies import Trial
from .replay import NotCompared, Replay
from .trial import Outputs, agreement, exact_of, kind_of, reason_of


def compare_functions(parts: Parts, trials: Sequence[Trial]) -> None:
    """``output_check`` events of what each function gives and changes, against eager."""
    until = time.monotonic() + COMPARING_S
    number = len(parts.control.regions)
    for trial, also in ((each, also) for each in trials for also in each.also):
        number += 1
        key = {"region_id": number, "run": "trial", "backend": None, "trial": trial.name}
        key["function"] = also.name
        rows: dict[str, dict[str, Any]] = {}
        taken = also.taker.taken.get(-1)
        try:
            if taken is None or time.monotonic() > until:
                why = also.taker.left_out.get(
                    -1, "it was not called, or the time limit was reached"
                )
                raise NotCompared(why)
            replay = Replay(parts.torch, taken, parts.frames)
            replay.check_room()
            try:
                eager = replay.run()
                exact: Outputs = {}
                with suppress(Exception):  # not every operator knows float64
                    exact = exact_of(parts.torch, replay, eager)
                drawn = {"fallback_random": True} if replay.draws else {}
                config = parts.torch._inductor.config
                with trial.switched(), config.patch(compile_threads=1, **drawn):
                    found = replay.run(trial.compiled_alone)
            finally:
                replay.put_back()
            for name in dict.fromkeys((*eager, *found)):
                one, other = ({**replay.before, **each}.get(name) for each in (eager, found))
                rows[name] = agreement(parts.torch, one, other, exact.get(name))
            if not any(isinstance(each, parts.torch.Tensor) for each in eager.values()):
                raise NotCompared("it returns no tensor and writes to none of its arguments")
        except Exception as error:  # noqa: BLE001 - the user's code, on copies
            rows = {"": {"same": None, "why": reason_of(error)}}
        for name, row in rows.items():
            given = {"output": f"{name} of {also.name}()" if name else None, "what": kind_of(name)}
            parts.recorder.write("output_check", **key, **given, **row)
