"""The story of a job in the JSON contract."""

import json
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

import jsonschema
import msgspec
from factories import make_run, tables_of
from msgspec.structs import fields, replace

from traceview.diagnosis import build, ruling
from traceview.diagnosis.contract import from_json, schema, to_json
from traceview.diagnosis.job.model import Job


def filled(kind):
    """A value of a type with something in every field."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return kind(**{field.name: filled(hints[field.name]) for field in fields(kind)})
    arguments, origin = get_args(kind), get_origin(kind)
    if origin is tuple:
        ends = arguments[-1] is Ellipsis
        return (filled(arguments[0]),) * 2 if ends else tuple(map(filled, arguments))
    if origin is dict:
        return {"key": filled(arguments[1])}
    if origin in (Union, UnionType):
        return filled(arguments[0])
    return {str: "é\x00", float: 0.5, int: 7, bool: True}[kind]


def test_the_story_survives_json_and_keeps_to_the_schema(tmp_path, monkeypatch):
    monkeypatch.setattr(ruling, "run_rules", lambda *_: ((), ()))
    plain = build.diagnose(make_run(tmp_path), tables_of())
    assert plain.job is None
    diagnosis = replace(plain, job=filled(Job))
    data = json.loads(json.dumps(to_json(diagnosis)))
    assert from_json(data) == diagnosis
    jsonschema.Draft202012Validator(schema()).validate(data)
