"""``traceview rollout`` with a collector that leaves events made by hand."""

import json

import jsonschema
import pytest
from cli_runs import Cli
from recordings import unpack
from served_events import USUAL, end, region, safe, served, write

from traceview import collectors
from traceview.cli.rollout import CHECKS
from traceview.collectors import trials as door
from traceview.rollout import model
from traceview.run import Ending, Run


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


@pytest.fixture
def run(tmp_path):
    return unpack("bad-gb_item", tmp_path)


@pytest.fixture
def target(monkeypatch):
    """``target(calls)``: what every process serves; the processes that were asked for."""
    asked = []

    def answer(calls, kind="exit"):
        class Trials:
            def __init__(self, options, run, _console):
                self.options, self.run = options, run

            def __enter__(self):
                return self

            def __exit__(self, *_error):
                asked.append("cleared")

            def serve(self, name, **how):
                asked.append((name, how))
                events = [region(), *served(calls), end()]
                return write(self.run.folder / "raw" / name, events), Ending(kind, 0)

        monkeypatch.setattr(door, "Trials", Trials)
        return asked

    return answer


def test_the_names_of_checks_are_the_models():
    assert CHECKS == model.CHECKS


def test_three_processes_serve(cli, run, target):
    asked = target(safe())
    cli("rollout", "--calls", "200", "--seconds", "9", run)
    assert cli.code == 0
    *serving, cleared = asked
    assert cleared == "cleared"
    assert [(name, how["mode"]) for name, how in serving] == [
        ("serving-cold", "compiled"),
        ("serving-warm", "compiled"),
        ("serving-eager", "eager"),
    ]
    assert {(how["calls"], how["seconds"]) for _, how in serving} == {(200, 9.0)}
    assert "✓ No recompiles after warm-up: none in 100 calls" in cli.out
    assert "– Outputs agree: outputs were not compared" in cli.out
    assert cli.out.rstrip().endswith(f"rollout: {run / 'rollout.html'}")
    assert (run / "rollout.md").read_text().startswith("**Nothing failed")


def test_what_was_seen_is_printed_on_a_full_disk(cli, run, target):
    target(safe())
    (run / "rollout.json").mkdir()
    assert cli("rollout", run).code == 2
    assert "Calls after the warm-up" in cli.out
    assert "rollout.json could not be written" in cli.err


def test_json_is_one_document_that_fits_its_schema(cli, run, target):
    target(safe())
    cli("rollout", "--json", run)
    document = json.loads(cli.out)
    jsonschema.validate(document, model.schema())
    assert json.loads((run / "rollout.json").read_text()) == document
    assert document["environment"]["torch_version"]


def test_the_schema_is_written():
    text = (model.contracts.Path(model.__file__).parent / "schema.json").read_text()
    assert json.loads(text) == model.schema()


def test_a_script_is_diagnosed_with_its_outputs_first(cli, run, target, monkeypatch):
    target(safe())
    seen = []
    monkeypatch.setattr(
        collectors, "collect", lambda options, _console: (seen.append(options), Run.open(run))[1]
    )
    cli("rollout", "serve.py", "--calls", "7")
    assert cli.code == 0
    assert (seen[0].target, seen[0].args) == ("serve.py", ("--calls", "7"))
    assert seen[0].compare_outputs


@pytest.mark.parametrize(
    ("required", "code"),
    [(None, 0), ("recompiles", 0), ("recompiles,fallback", 0), ("outputs", 1), ("all", 1)],
)
def test_require(cli, run, target, required, code):
    target(safe())
    cli("rollout", *(["--require", required] if required else []), run)
    assert cli.code == code


def test_a_late_compile_fails_the_requirement(cli, run, target):
    target([*safe(), (7, 500.0, 1, USUAL)])
    cli("rollout", "--require", "recompiles", run)
    assert cli.code == 1
    assert cli.out.startswith("Not ready: recompiles failed")


def test_shapes_of_the_real_traffic(cli, run, target, tmp_path):
    target(safe())
    file = tmp_path / "shapes.jsonl"
    file.write_text('{"ids": [1, 32], "mask": [1, 32]}\n{"ids": [1, 40], "mask": [1, 40]}\n')
    cli("rollout", "--shapes", file, run)
    assert "✕ Shapes covered: 50 % of the calls in the file" in cli.out
    assert "not covered: ids/mask 1×40 (1 call)" in " ".join(cli.out.split())


def test_ctrl_c_reports_what_there_is(cli, run, target):
    asked = target(safe(), kind="interrupted")
    cli("rollout", run)
    assert cli.code == 130
    assert [name for name, _ in asked[:-1]] == ["serving-cold"]
    assert "✓ No recompiles after warm-up" in cli.out
    assert "– Caches kept" in cli.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--require", "speed"], "'speed' is no check: outputs, recompiles"),
        (["--memory-limit", "much"], "is no size such as 512M or 8GiB"),
        (["--calls", "0"], "0 is not in the range"),
        (["--shapes", "missing.jsonl"], "does not exist"),
        (["--warm"], "--warm is for a new run"),
    ],
)
def test_usage_errors(cli, run, target, words, said):
    asked = target(safe())
    cli("rollout", *words, run)
    assert cli.code == 2
    assert said in cli.err
    assert asked == []


def test_a_bad_file_of_shapes_is_found_before_anything_runs(cli, target, tmp_path):
    asked = target(safe())
    file = tmp_path / "shapes.jsonl"
    file.write_text("[1, 2]\n[1, x]\n")
    cli("rollout", "--shapes", file, "serve.py")
    assert cli.code == 2
    assert "line 2: it is not JSON" in cli.err
    assert asked == []


@pytest.mark.parametrize(
    ("text", "size"), [("8GiB", 8 << 30), ("512M", 512 << 20), ("1.5g", 3 << 29), ("1000", 1000)]
)
def test_sizes(cli, run, target, text, size):
    target(safe())
    cli("rollout", "--memory-limit", text, run)
    assert cli.code == 0
    limit = "passed" if size >= 400 << 20 else "failed"
    mark = {"passed": "✓", "failed": "✕"}[limit]
    assert f"{mark} Memory: peak of 400 MiB compiled" in cli.out
