"""Is it safe to roll out? What serving processes recorded, a checklist, shapes and buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from traceview.diagnosis.model import Diagnosis
from traceview.rollout.checks import Facts, checklist, verdict
from traceview.rollout.model import CHECKS, PROCESSES, ProcessName, Rollout, schema, to_json
from traceview.rollout.reading import Called, Recorded, read_served
from traceview.rollout.shapes import Sizes, read_shapes
from traceview.rollout.traffic import known_of, of_file, of_run
from traceview.words.text import one_line

__all__ = ["CHECKS", "PROCESSES", "assess", "read_served", "read_shapes", "schema", "to_json"]

#: Facts of the environment that the figures are worth nothing without.
_FACTS = (
    *("torch_version", "triton_version", "cuda_version", "python_version"),
    *("platform", "device_name", "cpu_threads"),
)


def assess(
    diagnosis: Diagnosis,
    recorded: Mapping[ProcessName, Recorded],
    *,
    made_by: str,
    shapes: tuple[Path, Counter[Sizes]] | None = None,
    warmup: int | None = None,
    memory_limit: int | None = None,
    own_cache: bool = False,
) -> Rollout:
    """The whole record. A file's shapes are of the callable with most time in the cold process."""
    facts = Facts(diagnosis, recorded, warmup, memory_limit, own_cache)
    eager = {each.region_id: each for each in facts.called("eager")}
    traffic, main, file = [], None, None
    for called in sorted(facts.called("cold"), key=_time, reverse=True):
        known = known_of(recorded["cold"], called)
        if known is not None:
            main = main or known
            traffic.append(of_run(called, eager.get(called.region_id), known))
    if shapes is not None:
        file = of_file(*shapes, main)
        traffic.append(file)
    coverage = file.coverage if file is not None else None
    checks = checklist(Facts(diagnosis, recorded, warmup, memory_limit, own_cache, coverage))
    values = {name: diagnosis.environment.get(name) for name in _FACTS}
    # What limits the figures.
    notes = []
    for name, each in recorded.items():
        if each.process.error is not None:
            notes.append(f"The {name} process ended with {one_line(each.process.error, 300)}.")
        elif each.process.why is None:
            notes.append(f"The {name} process did not record its end ({each.process.ended}).")
    warmups = {called.warmup(None) for each in recorded.values() for called in each.called}
    if warmups == {1}:
        notes.append(
            "No warm-up with lines of its own was seen: only the first call counts as warm-up. "
            "--warmup N sets another number."
        )
    return Rollout(
        target=diagnosis.target,
        created=diagnosis.created,
        traceview=made_by,
        environment={k: None if v is None else one_line(str(v), 200) for k, v in values.items()},
        ready=all(each.passed for each in checks),
        verdict=verdict(checks),
        checks=checks,
        served=tuple(
            called.served(name, warmup)
            for name in PROCESSES
            for called in sorted(facts.called(name), key=_time, reverse=True)
        ),
        processes=tuple(recorded[name].process for name in PROCESSES if name in recorded),
        traffic=tuple(traffic),
        notes=tuple(notes),
    )


def _time(called: Called) -> float:
    return sum(call.ms for call in called.calls if not call.compiles)
