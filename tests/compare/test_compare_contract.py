"""The JSON contract of a comparison: its schema, and that every key is explained."""

import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema

from traceview.check import model as check_contract
from traceview.compare import model as contract
from traceview.compare.figures import kinds

DOCS = Path(__file__).resolve().parents[2] / "docs" / "compare-and-check.md"


def test_the_schema_is_one_and_the_file_is_it():
    for module, package in ((contract, "traceview.compare"), (check_contract, "traceview.check")):
        jsonschema.Draft202012Validator.check_schema(module.schema())
        committed = json.loads(files(package).joinpath("schema.json").read_text("utf-8"))
        assert committed == module.schema(), f"the model changed: call {package}'s write_schema()"


def test_every_key_and_every_figure_is_documented():
    described = set(re.findall(r"`([a-z_]+)`", DOCS.read_text("utf-8")))
    keys = {kind.key for kind in kinds()}
    for module in (contract, check_contract):
        made = module.schema()
        keys |= set(made["properties"])
        for definition in made["$defs"].values():
            keys |= set(definition["properties"])
    assert keys - described == set()
