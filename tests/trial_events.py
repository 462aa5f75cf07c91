"""Raw folders of trials processes, made by hand as the collector writes them."""

import json

from msgspec.structs import replace

from traceview.trials import Plan, Remedy, Results, results
from traceview.trials.rounds import Process

PATCH = "--- a.py\n+++ a.py\n@@ -1,1 +1,1 @@\n-a = '<i>'\n+a = 2\n"
REMEDIES = (
    Remedy("dynamic=None", ("dynamic=None",), rules=("rc-dynamic-false",), predicted_ms=2.5),
    Remedy("mode=reduce-overhead", ("mode=reduce-overhead",)),
    Remedy("autocast=bfloat16", ("autocast=bfloat16",)),
    Remedy("patch a.py:1", patch=PATCH),
    Remedy("no_grad", ("no_grad",)),
    Remedy("fullgraph=True", ("fullgraph=True",)),
)


def trial(name, state="measured", **more):
    return {
        "event": "trial", "t": 1.0, "name": name, "state": state, "why": None, "compile_s": 2.5,
        "compiles": 1, "graphs": 1, "graph_breaks": 0, "peak_bytes": 100,
        "baseline_peak_bytes": 100, "step": 40,
    } | more  # fmt: skip


def block(name, pair, stance, ms, steps=50, **more):
    return {
        "event": "block", "t": 1.0, "trial": name, "block_index": 2 * pair, "pair_index": pair,
        "stance": stance, "anchor_region_id": 0, "first_step": 0, "steps": steps,
        "skipped_steps": 0, "replayed": False, "clock": "host", "duration_ms": ms * steps,
        "host_ms": ms * steps, "thread_ms": ms * steps, "queued_ms": 0.0, "region_calls": steps,
        "other_thread_calls": 0, "compiles_inside": 0, "page_faults": 0, "started_us": 1.0,
    } | more  # fmt: skip


def blocks(name, ratio, *, pairs=8, noise=0.004, base="compiled", ms=10.0, **more):
    """Pairs in which the trial is faster by ``ratio``, with some noise."""
    found = []
    for pair in range(pairs):
        wobble = 1 + noise * (pair % 3 - 1)
        found.append(block(name, pair, base, ms * wobble, **more))
        found.append(block(name, pair, "trial", ms / ratio, **more))
    return found


def check(name, run, same, output="output", **more):
    return {
        "event": "output_check", "t": 1.0, "trial": name, "region_id": 0, "run": run,
        "output": output, "same": same, "why": None, "rmse": 1e-3, "eager_rmse": 1e-7,
        "max_abs_diff": 0.25,
    } | more  # fmt: skip


def agreeing(name):
    return [check(name, "trial", True), check(name, "compiled", True)]


def measured(name, ratio, **more):
    """Everything that a trial which agrees and is faster by ``ratio`` leaves behind."""
    return [*blocks(name, ratio, **more), *agreeing(name), trial(name)]


def alone(ms, called="forward", **more):
    """Events of a process that ran one way all the time: a step takes so many ms."""
    timed = [
        {key: value for key, value in block("", n, "compiled", ms).items() if key != "trial"}
        for n in range(12)
    ]
    compiled = {"event": "compile", "t": 1.0, "duration_ms": 2000.0}
    region = {"event": "region", "t": 0.5, "region_id": 0, "name": called}
    call = {"event": "first_call", "t": 1.0, "region_id": 0, "host_ms": 1.0, "stack": []}
    return [region, call, compiled, *(one | more for one in timed)]


def write(folder, events, pid=7):
    folder.mkdir(parents=True, exist_ok=True)
    head = {"event": "process", "t": 0.0, "pid": pid, "rank": None, "pass": "trials"}
    lines = "".join(json.dumps(event) + "\n" for event in (head, *events))
    (folder / f"events-{pid}.jsonl").write_text(lines)
    return folder


def remedy(name, **more):
    return Remedy(name, settings=(name,), **more)


def recorded(folder):
    """The record of six remedies, with every verdict, of two combined, and of an untried one."""
    first = [
        *measured("dynamic=None", 1.4),
        trial("mode=reduce-overhead", "failed", why="RuntimeError: <script>"),
        *blocks("autocast=bfloat16", 1.9), *agreeing("autocast=bfloat16"),
        check("autocast=bfloat16", "trial", False, "loss"), trial("autocast=bfloat16"),
        *measured("patch a.py:1", 1.2),
        *measured("no_grad", 0.9),
        trial("fullgraph=True", "not_applicable", why="it is set already"),
    ]  # fmt: skip
    both = measured("dynamic=None+patch a.py:1", 1.7)
    answers = iter([first, both])
    spare = (Remedy("gb-<b>").untried("no remedy"),)

    def ask(_remedies, _seconds):
        return Process(
            write(folder / f"{id(object())}-{len(list(folder.iterdir()))}", next(answers))
        )

    made = results(Plan(REMEDIES, "compiled", 600.0, spare), ask, None)
    return Results(
        target="train.py", created=None, traceview="0.1", baseline="compiled",
        budget_seconds=600.0, environment={"torch_version": "2.13.0", "device_name": None},
        trials=made.trials, recommended=made.recommended, not_tried=made.not_tried,
    )  # fmt: skip


def swept(record):
    """That of a sweep, with one row that has everything."""
    row = replace(
        record.trials[0], arguments=("--batch", "8"), compile_seconds_warm=0.25,
        autotune_seconds=1.5, recompiles=2, cudagraphs="skipped", cudagraphs_why="mutated <i>",
        break_even_steps=1234, rmse=1.5e-7, eager_rmse=1e-7, max_abs_diff=0.5,
        notes=("no <b>",), debug="raw/trials-1/debug/1",
    )  # fmt: skip
    return replace(
        record, baseline="eager", trials=(row,), eager_ms=5.0, compiled_ms=4.0, speedup=1.25
    )
