"""
## What it finds
Cudagraphs that are recorded again in steady steps, as tensors that they read have moved: a
parameter or buffer gets new storage (`t.data = …`, `module.weight = …`) instead of new values.

## Why it costs
A cudagraph reads parameters and buffers at the addresses that they had when it was recorded. Where
one of them has moved, none of the recorded graphs fits, and the call records one more: that takes
longer than running the graph in eager, and each of them is kept.

## Evidence
torch's own reason for leaving a recorded graph (TORCH_LOGS=cudagraphs), which names the inputs with
the lines that use them, or inputs that lie at other addresses in two recordings in a row; a line of
the script's that gives a tensor other storage (`t.data = …`, `vector_to_parameters`), where the
profiled step ran one or there is no other; and the recordings in the timed compiled steps. They
take at least 5 % of these steps. torch writes that reason for each recorded graph that a call looks
at, so the number of such lines says nothing.

## What to do
Update the tensor in place: `t.copy_(new)`, `t.data.copy_(new)`, `t.lerp_(new, weight)`, or
`torch._foreach_lerp_` for all of them at once. Where tensors move and must, leave this function
without cudagraphs.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the recordings must take.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_trees.py, `check_invariants`
- torch/_inductor/cudagraph_utils.py, `log_data_ptr_mismatch`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from traceview.rules.kit import (
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Location,
    Owners,
    Row,
    Snippet,
    Tables,
    about,
    first_rank,
    from_row,
    if_users,
    milliseconds,
    plural,
    rows,
    step_ms,
)
from traceview.torchtext.cudagraphs import (
    moved_inputs,
    other_addresses,
    run_id,
    same_addresses,
)
from traceview.torchtext.frames import StackFrame
from traceview.words import names

CODE = "TV515"
NEEDS = frozenset({"compiles", "cudagraph_events", "compile_intervals", "blocks"})
SEVERITIES = ("warning",)
GPU_ONLY = True
#: A recording is host work on the way into compiled code, and marked as a compile.
EXPLAINS = frozenset({"overheads_added", "compile", "idle_compile"})

#: Less of a step is hard to tell from noise.
LEAST_SHARE = NOTABLE_SHARE


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for each function."""
    step, owners = step_ms(tables, "compiled"), tables.once(Owners)
    blocks = first_rank(rows(tables, "blocks", stance="compiled"))
    blocks = [row for row in blocks if not row["replayed"]]  # one call's inputs, which do not move
    timed = {row["first_step"] + number for row in blocks for number in range(row["steps"])}
    for compile_id, recorded, reason, number in _moves(tables):
        inside = [row for row in recorded if row["step"] in timed]
        ms = sum(row["duration_ms"] for row in inside) / max(1, len(timed))
        if not step or ms < least_share * step:
            continue
        moved = moved_inputs(reason["reason"])
        compiles = first_rank(rows(tables, "compiles", compile_id=compile_id))[:1]
        places = _uses(tables, moved) or [p for row in compiles if (p := owners.code(row).place)]
        name = f" of {names.function(compiles[0]['co_name'])}" if compiles else ""
        what = (
            f"addresses of {number} inputs change" if number > 1 else "address of an input changes"
        )
        many = number > 1
        named = f"static input data pointer changed: {', '.join([*moved][:3])}"
        steps = len({row["step"] for row in inside})
        yield Finding(
            code=CODE,
            rule="cg-moved-input",
            severity="warning",
            title=f"{len(recorded)} cudagraphs{name}: the {what}",
            explanation=(
                "A cudagraph reads parameters and buffers at the addresses of its recording. "
                f"{'These get' if many else 'This one gets'} new storage between calls, so no "
                "recorded graph fits and the call records one more."
            ),
            cost=Cost(ms, None, "cudagraph recordings in the timed compiled steps"),
            confidence="measured",
            location=places[0] if places else None,
            also_at=tuple(places[1:4]),
            about=about(*compiles),
            evidence=(
                from_row(
                    f"{named}{', …' if len(moved) > 3 else ''}"
                    if moved
                    else f"{number} of the inputs that two recordings in a row name have moved",
                    "cudagraph_events",
                    reason,
                ),
                Evidence(
                    f"recordings in {steps} of {plural(len(timed), 'timed step')}, "
                    f"{milliseconds(ms)} per step",
                    "compile_intervals",
                ),
            ),
            what_to_do=(
                "Update these tensors in place, so that they keep their storage: copy_() or "
                "lerp_() instead of `t.data = …` or a new tensor in the attribute."
            ),
            snippet=Snippet("python", "t.data.copy_(new)  # not t.data = new"),
        )


def _moves(tables: Tables) -> Iterator[tuple[str, list[Row], Row, int]]:
    """Compile id, its recordings, the reason or last of them, and how many inputs have moved."""
    spans: dict[str, list[Row]] = {}
    for row in first_rank(rows(tables, "compile_intervals", trigger="cudagraph_recording")):
        if row["compile_id"] and row["duration_ms"] is not None:
            spans.setdefault(row["compile_id"], []).append(row)
    reasons = {
        run_id(row["reason"]): (row, len(moved))
        for row in first_rank(rows(tables, "cudagraph_events", event="rerecord"))
        if (moved := moved_inputs(row["reason"]))
    }
    known = _last_recordings(tables) | reasons
    for compile_id, recorded in spans.items():
        if compile_id in known:
            yield compile_id, recorded, *known[compile_id]


def _last_recordings(tables: Tables) -> dict[str | None, tuple[Row, int]]:
    """Run → its last recording, and how many inputs lie elsewhere than in the one before.

    Of a run that torch gives no reason to record again. For inputs of the same sizes, moved ones
    are the only reason there is; those that torch copies itself do not count.
    """
    records: dict[str | None, list[Row]] = {}
    for row in first_rank(rows(tables, "cudagraph_events", event="record")):
        records.setdefault(run_id(row["reason"]), []).append(row)
    moved = {}
    for run, (*earlier, last) in records.items():
        # Where a recorded graph fits, it is something else that keeps torch from using it.
        if earlier and not any(same_addresses(row["reason"], last["reason"]) for row in earlier):
            moved[run] = last, other_addresses(earlier[-1]["reason"], last["reason"])
    return {run: found for run, found in moved.items() if found[1]}


def _uses(tables: Tables, moved: dict[str, tuple[StackFrame, ...]]) -> list[Location]:
    """Where they get other storage, and the user's own lines that use them."""
    # Lines that give a tensor other storage and ran in the step whose lines are known.
    ran = Counter(
        (row["file"], row["line"])
        for row in first_rank(rows(tables, "line_ops", kind="line"))
        if row["stance"] == "compiled"
    )
    noted = first_rank(rows(tables, "noted_lines", kind="storage"))
    lines = {(row["file"], row["line"]): ran[row["file"], row["line"]] for row in noted}
    swaps = [Location(*at) for at, times in Counter(lines).most_common() if times]
    if not swaps and len(lines) == 1:  # the only one that the script has, of another step
        swaps = [Location(*at) for at in lines]
    # Outermost lines that use them: there most inputs have one in common.
    uses: Counter[Location] = Counter()
    for stack in moved.values():
        known = (if_users(at.file, at.line, at.function) for at in stack if at.line is not None)
        uses.update([place for place in known if place][:1])
    return [*swaps, *(place for place, _ in uses.most_common())]
