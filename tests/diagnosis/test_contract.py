"""The JSON contract: its keys, its schema, and that nothing is lost on the way and back."""

import json
import math
import re
from importlib.resources import files
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import jsonschema
import msgspec
import pytest
from factories import finding, make_run, tables_of
from msgspec.structs import fields, replace

from traceview.contracts import plain
from traceview.diagnosis import build, ruling
from traceview.diagnosis.contract import from_json, schema, to_json
from traceview.diagnosis.explanation import Explanation
from traceview.errors import NothingToAnalyse
from traceview.tables import Tables

DOCS = Path(__file__).resolve().parents[2] / "docs" / "diagnosis.md"


@pytest.fixture
def full(tmp_path, monkeypatch):
    found = (finding(ms=2.0), finding(seconds=3.0, severity="error"), finding(line=3))
    monkeypatch.setattr(ruling, "run_rules", lambda *_: (found, ()))
    return build.diagnose(make_run(tmp_path), tables_of())


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setattr(ruling, "run_rules", lambda *_: ((), ()))
    return build.diagnose(make_run(tmp_path), Tables())


@pytest.fixture
def explained(full):
    return replace(full, explanation=filled(Explanation))


def filled(kind):
    """A value of a type with something in every field, and two of what there may be many of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return kind(**{field.name: filled(hints[field.name]) for field in fields(kind)})
    if get_origin(kind) is tuple:
        return (filled(get_args(kind)[0]),) * 2
    if get_args(kind):  # X | None
        return filled(get_args(kind)[0])
    return {str: "é\x00", float: 0.5, int: 7, bool: True}[kind]


@pytest.mark.parametrize("which", ["full", "empty", "explained"])
def test_round_trip_through_text_is_exact(which, request):
    diagnosis = request.getfixturevalue(which)
    assert from_json(json.loads(json.dumps(to_json(diagnosis)))) == diagnosis


@pytest.mark.parametrize("which", ["full", "empty", "explained"])
def test_it_keeps_to_its_schema(which, request):
    data = to_json(request.getfixturevalue(which))
    jsonschema.Draft202012Validator(schema()).validate(data)


def test_the_schema_is_one_and_the_file_is_it():
    jsonschema.Draft202012Validator.check_schema(schema())
    committed = json.loads(files("traceview.diagnosis").joinpath("schema.json").read_text("utf-8"))
    assert committed == schema(), "the model changed: call contract.write_schema()"


@pytest.mark.parametrize(
    "break_it",
    [
        lambda data: data.pop("verdict"),
        lambda data: data["verdict"].pop("sentence"),
        lambda data: data["verdict"].update(speedup="6.9"),
        lambda data: data["findings"][0].update(severity="fatal"),
        lambda data: data["verdict"].update(speedup_interval=[1.0]),
        lambda data: data.update(format=1),
        lambda data: data["explanation"].pop("waterfall"),
        lambda data: data["explanation"]["matching"].update(groups=None),
    ],
)
def test_the_schema_is_strict(full, break_it):
    data = to_json(full)
    break_it(data)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(data)


def test_the_keys_of_the_contract(full):
    data = to_json(full)
    assert list(data)[:4] == ["format", "verdict", "break_even_steps", "compile_seconds"]
    assert data["format"] == 2
    assert data["verdict"].keys() >= {
        "outcome", "speedup", "speedup_interval", "eager_ms", "compiled_ms", "clock", "blocks",
        "sentence",
    }  # fmt: skip
    assert data["verdict"]["speedup_interval"] == [6.7, 7.0]
    assert data["compile_seconds"] == 4.0
    assert data["accounting"]["eager"][0].items() >= {"category": "elementwise", "ms": 0.2}.items()
    assert data.keys() >= {"regions", "findings", "not_checked", "reading", "environment"}
    assert data["reading"].keys() >= {"records", "unreadable"}
    first = data["findings"][0]
    assert first.keys() >= {
        "code", "rule", "severity", "title", "cost", "confidence", "location", "evidence",
        "what_to_do", "snippet",
    }  # fmt: skip
    assert first["location"].keys() == {"file", "line", "function"}
    assert isinstance(first["what_to_do"], str)


def test_a_cost_names_only_what_is_known(full):
    costs = [found["cost"].keys() - {"about"} for found in to_json(full)["findings"]]
    assert costs == [{"ms_per_step"}, {"seconds"}, set()]


def test_numbers_that_are_not_finite_are_null(full):
    verdict = replace(full.verdict, speedup=math.nan, speedup_interval=(1.0, 2.0))
    data = to_json(replace(full, verdict=verdict, environment={"x": [math.inf, 1.5]}))
    assert data["verdict"]["speedup"] is None
    assert data["environment"] == {"x": [None, 1.5]}
    json.dumps(data, allow_nan=False)


@pytest.mark.parametrize("data", [{}, [], {"format": 3}, {"format": 2, "verdict": 3}])
def test_foreign_data_is_refused_in_words(data):
    with pytest.raises(NothingToAnalyse) as caught:
        from_json(data)
    assert caught.value.slug == "foreign-diagnosis"


def test_format_1_is_read_and_its_reasons_are_those_of_its_waterfall(explained):
    data = to_json(explained)
    new = ("headline", "support", "remarks", "difference_ms", "why", "unexplained_ms", "advice")
    data["format"] = 1
    data["verdict"] = {key: data["verdict"][key] for key in data["verdict"] if key not in new}
    verdict = from_json(data).verdict
    assert verdict.headline == explained.verdict.sentence.rstrip(".")
    change = verdict.compiled_ms - verdict.eager_ms
    named = {part.effect: part.ms for part in verdict.why}
    assert verdict.difference_ms == change
    assert sum(named.values()) + verdict.unexplained_ms == pytest.approx(change)
    waterfall = explained.explanation.waterfall
    assert named
    for name, ms in named.items():
        assert ms == sum(e.ms for e in waterfall if e.effect == name)


def test_every_key_is_documented():
    described = set(re.findall(r"`([a-z_]+)`", DOCS.read_text("utf-8")))
    made = schema()
    keys = set(made["properties"])
    for definition in made["$defs"].values():
        keys |= set(definition["properties"])
    assert keys - described == set()


def test_sets_are_sorted_lists():
    """In JSON they would otherwise follow the hash seed of the process."""

    class Model(msgspec.Struct):
        about: frozenset[str]

    names = [f"file{number}.py:1" for number in range(40)]
    assert plain(Model(frozenset(names)))["about"] == sorted(names)
