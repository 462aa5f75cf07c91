"""The results record: its contract, its page and its table."""

import csv
import io
import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema
import msgspec
import pytest
from trial_events import recorded, swept

from traceview.errors import NothingToAnalyse
from traceview.reports import trials as tables
from traceview.reports.trials import terminal
from traceview.reports.trials.words import by_rule, gain
from traceview.trials import Results, from_json, to_json
from traceview.trials import model as contract

DOCS = Path(__file__).resolve().parents[2] / "docs" / "try.md"


@pytest.fixture
def record(tmp_path):
    return recorded(tmp_path)


def test_the_schema_is_one_and_the_file_is_it():
    jsonschema.Draft202012Validator.check_schema(contract.schema())
    committed = json.loads(files("traceview.trials").joinpath("schema.json").read_text("utf-8"))
    assert committed == contract.schema(), "the model changed: call write_schema()"


def test_every_key_and_every_verdict_is_documented():
    described = set(re.findall(r"`([a-z_]+)`", DOCS.read_text("utf-8")))
    made = contract.schema()
    keys = set(made["properties"]) | set(contract.VERDICTS)
    for definition in made["$defs"].values():
        keys |= set(definition["properties"])
    assert keys - described == set()


def test_nothing_is_lost_on_the_way_and_back(record):
    data = json.loads(json.dumps(to_json(record)))
    jsonschema.validate(data, contract.schema())
    assert from_json(data) == record


@pytest.mark.parametrize("data", [None, {}, {"format": 2}, {"format": 1, "trials": 3}])
def test_another_document_is_refused(data):
    with pytest.raises(NothingToAnalyse):
        from_json(data)


def test_every_verdict_has_a_line(record):
    text = terminal(record, 100, color=False)
    for line in (
        " 1 ▲ accepted             1.40×",
        " 2 ✕ failed",
        " 3 ! changes the results  1.90×",
        " 4 ▲ accepted             1.20×",
        " 5 ▼ slower               0.90×",
        " 6 – not applicable",
    ):
        assert line in text
    assert max(map(len, text.splitlines())) <= 100
    assert "loss differs from eager" in text
    assert "-a = '<i>'" in text
    assert "  gb-<b>: no remedy" in text


def test_colors_only_on_request(record):
    assert "\x1b[32m 1 ▲ accepted" in terminal(record, 100, color=True)
    assert "\x1b" not in terminal(record, 20, color=False)


def test_the_page_is_whole_and_escaped(record):
    text = tables.html(record)
    assert "<script" not in text
    assert "<i>" not in text
    assert "gb-&lt;b&gt;" in text
    assert "RuntimeError: &lt;script&gt;" in text
    assert "-a = &#39;&lt;i&gt;&#39;" in text
    assert "http" not in re.sub(r"http-equiv", "", text)
    assert text.count("1.40×") == 2  # its row, and the reason of the recommendation
    assert ">not recorded<" in text  # the device


def test_nothing_at_all():
    fields = {field.name: () for field in msgspec.structs.fields(Results)}
    empty = Results(**{
        **fields, "target": "x", "created": None, "traceview": "0", "baseline": "eager",
        "budget_seconds": 1.0, "environment": {}, "recommended": None,
        "eager_ms": None, "compiled_ms": None, "speedup": None, "speedup_interval": None,
    })  # fmt: skip
    assert "Nothing was tried" in tables.html(empty)
    assert terminal(empty, 80, color=False) == "= Nothing was tried"


def test_a_row_for_every_trial_in_a_spreadsheet(record):
    rows = list(csv.DictReader(io.StringIO(tables.csv(record))))
    assert [row["name"] for row in rows] == [trial.name for trial in record.trials]
    first = rows[0]
    assert (first["verdict"], first["rules"]) == ("accepted", "rc-dynamic-false")
    assert float(first["ratio"]) == record.trials[0].ratio
    assert (float(first["low"]), float(first["high"])) == record.trials[0].interval
    failed = next(row for row in rows if row["verdict"] == "failed")
    assert (failed["ratio"], failed["low"], failed["trial_ms"]) == ("", "", "")
    assert {row["torch_version"] for row in rows} == {"2.13.0"}


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)"])
def test_no_cell_is_a_formula(record, text):
    odd = msgspec.structs.replace(record.trials[0], name=text, why=f"{text}")
    made = tables.csv(msgspec.structs.replace(record, trials=(odd,), target=text))
    (row,) = csv.DictReader(io.StringIO(made))
    assert (row["name"], row["why"], row["target"]) == (f"'{text}",) * 3
    assert not row["ratio"].startswith("'")


def test_a_sweeps_row_has_what_a_table_of_several_needs(record):
    made = swept(record)
    (cells,) = csv.DictReader(io.StringIO(tables.csv(made)))
    assert cells["arguments"] == "'--batch 8"
    assert (cells["cudagraphs"], cells["break_even_steps"]) == ("skipped", "1234")
    assert (cells["rmse"], cells["speedup"], cells["notes"]) == ("1.5e-07", "1.25", "no <b>")
    page = tables.html(made)
    for text in ("Eager → compiled", "mutated &lt;i&gt;", "no &lt;b&gt;", "warm: 0.2",
                 "2 recompiles", "autotuning: 1.5", "1,234 steps", "RMSE 1.5e-07", "--batch 8",
                 "5.00 ms in eager, 4.00 ms compiled: 1.25×"):  # fmt: skip
        assert text in page
    table = tables.markdown(made)
    assert "1.50 s of it autotuning; 250 ms with warm caches" in table
    assert "skipped: mutated" in table
    said = terminal(made, 100, color=False)
    assert "break-even after 1,234 steps" in said
    assert "debug folder raw/trials-1/debug/1" in said.replace("\n      ", "")


def test_a_table_for_an_issue(record):
    text = tables.markdown(record)
    lines = text.splitlines()
    assert lines[0].startswith("**1.70× (")
    table = [line for line in lines if line.startswith("| ")]
    assert len(table) == len(record.trials) + 2
    assert len({line.count(" | ") for line in table if "---" not in line}) == 1
    assert "<" not in text
    assert "Not tried: gb-&lt;b&gt; (no remedy)" in text
    assert "torch.compile(..., dynamic=None)" in text


def test_a_rule_is_told_what_came_of_its_remedies(record):
    alone, both = by_rule(record)["rc-dynamic-false"]
    assert alone == f"Tried: accepted {gain(record.trials[0])} (`dynamic=None`)"
    assert both.startswith("Tried: accepted 1.70×")
    assert by_rule(record).keys() == {"rc-dynamic-false"}
