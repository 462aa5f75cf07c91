"""The diagnosis as JSON: the public contract, and its schema.

``to_json`` gives what ``traceview diagnose --json`` prints; ``from_json`` reads it back, exactly.
docs/diagnosis.md explains every key; schema.json is ``schema()`` as a file, written by
``write_schema``.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from traceview import contracts
from traceview.diagnosis.model import FORMAT, Diagnosis
from traceview.diagnosis.verdict import difference
from traceview.errors import NothingToAnalyse
from traceview.json_errors import NOT_JSON

#: Keys of the contract that repeat what another key holds, for readers who want just the figure.
_REPEATED = ("format", "compile_seconds")
#: Words that the model keeps as plain text.
_WORDS: dict[tuple[str, str], tuple[str | None, ...]] = {
    ("Verdict", "outcome"): (
        *("helped", "neutral", "hurt"),
        *("failed", "not_compiled", "not_measured"),
    ),
    ("Verdict", "clock"): ("device", "host", None),
    ("Verdict", "basis"): ("paired_blocks", "all_blocks", "two_runs", "none"),
    ("Reason", "basis"): ("measured", "derived", "heuristic"),
}


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Plain JSON data. A number that is not finite becomes null: JSON has no word for it."""
    data = contracts.plain(diagnosis)
    compile_seconds = data["compile_time"]["seconds"]
    for finding in data["findings"]:
        _tidy(finding)
    verdict, pays = data.pop("verdict"), data.pop("break_even_steps")
    return {
        "format": FORMAT,
        "verdict": verdict,
        "break_even_steps": pays,
        "compile_seconds": compile_seconds,
        **data,
    }


def from_json(data: dict[str, Any]) -> Diagnosis:
    """The diagnosis that ``to_json`` made ``data`` of; NothingToAnalyse for anything else.

    Format 1 is read, too: what its verdict lacks is made from its figures and its waterfall.
    """
    found = data.get("format") if isinstance(data, dict) else None
    if found not in (1, FORMAT):
        raise _foreign(f"its format is neither 1 nor {FORMAT}")
    kept = {key: value for key, value in data.items() if key not in _REPEATED}
    try:
        diagnosis = msgspec.convert(kept, Diagnosis)
    except NOT_JSON as error:
        raise _foreign(str(error)) from error
    if found == FORMAT:
        return diagnosis
    # What its verdict lacks; it names no finding.
    verdict, job = diagnosis.verdict, diagnosis.job
    eager, compiled = verdict.eager_ms, verdict.compiled_ms
    change = None if eager is None or compiled is None else compiled - eager
    effects = [effect for effect in diagnosis.explanation.waterfall if change is not None]
    rows = [{"effect": effect.effect, "what": "", "ms": effect.ms} for effect in effects]
    why = difference(rows, {e.effect: e.confidence for e in effects}, change, {})
    left = None if change is None else change - sum(reason.ms or 0.0 for reason in why)
    return replace(
        diagnosis,
        job=replace(job, headline=job.sentence.rstrip(".")) if job else None,
        verdict=replace(
            verdict,
            headline=verdict.sentence.rstrip("."),
            difference_ms=change,
            why=why,
            unexplained_ms=left,
        ),
    )


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what ``to_json`` gives."""
    made = contracts.schema_of(
        Diagnosis,
        FORMAT,
        "traceview diagnosis",
        also={"compile_seconds": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
        optional=frozenset({"Cost"}),  # it leaves out what is not known
    )
    for (name, key), values in _WORDS.items():
        made["$defs"][name]["properties"][key] = {"enum": list(values)}
    return made


def write_schema() -> None:
    """Write schema.json again, after a change of the model."""
    contracts.write_beside(__file__, schema())


def _tidy(finding: dict[str, Any]) -> None:
    """Costs without what is not known, sets in an order; the same for the symptoms."""
    for key in ("cost", "whole_cost"):
        if finding[key] is not None:
            finding[key] = {k: v for k, v in finding[key].items() if v is not None}
    finding["about"] = sorted(finding["about"])
    for symptom in finding["symptoms"]:
        _tidy(symptom)


def _foreign(why: str) -> NothingToAnalyse:
    fact = f"This is no diagnosis that this version of traceview reads ({why})."
    remedy = "Make it again with `traceview report RUN`."
    return NothingToAnalyse(fact, remedy, slug="foreign-diagnosis")
