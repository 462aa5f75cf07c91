"""Run a script, and write what torch's compiling took in it: ``clocked.py OUT SCRIPT [ARGUMENT]``.

``{"compile_s": …, "compile_cpu_s": …, "after_s": …}``: by the wall's clock and the CPU's (with C++
compilers'), and what came after the last compile, until the device was done.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

SPENT = {"compile_s": 0.0, "compile_cpu_s": 0.0}
EDGE = [0.0, 0.0]  # clocks at the last begin or end of a compile


def clocks() -> tuple[float, float]:
    spent = os.times()
    cpu = time.process_time() + spent.children_user + spent.children_system
    return time.perf_counter(), cpu


def began(*_about: Any) -> None:
    EDGE[:] = clocks()


def ended(*_about: Any) -> None:
    now = clocks()
    for name, begin, end in zip(SPENT, EDGE, now, strict=True):
        SPENT[name] += end - begin
    EDGE[:] = now


def main() -> None:
    out, script, *rest = sys.argv[1:]
    import torch
    from torch._dynamo.callback import callback_handler

    callback_handler.register_start_callback(began)
    callback_handler.register_end_callback(ended)
    callback_handler.clear = lambda: None  # a reset() of the script's would take them away
    sys.argv = [script, *rest]
    sys.path[0] = str(Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        after = time.perf_counter() - EDGE[0]
        Path(out).write_text(json.dumps(SPENT | {"after_s": after}))


if __name__ == "__main__":
    main()
