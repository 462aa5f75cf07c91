"""Where a ticket is written, what it never overwrites, follows or leaves behind, and strictness."""

import gzip
import json
import random
import re
import socket
import stat
import zipfile

import msgspec
import pytest
from cli_runs import Cli
from recordings import unpack

from traceview.contracts import text_of
from traceview.ticket import bundle
from traceview.ticket.redaction import Redaction
from traceview.torchtext.stages import STAGES
from traceview.trials import Results, Trial, to_json


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


@pytest.fixture
def run(tmp_path):
    return unpack("bad-cap_bad_args_backend", tmp_path)


def members(folder):
    with zipfile.ZipFile(folder / "ticket.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_it_lies_in_the_run_folder_and_is_its_owner_s_alone(cli, run):
    cli("ticket", "--no-run-env", run)
    assert cli.code in (0, None)
    assert f"Wrote {run / 'ticket.md'} and {run / 'ticket.zip'}" in cli.out
    for name in ("ticket.md", "ticket.zip"):
        assert stat.S_IMODE((run / name).stat().st_mode) == 0o600
    assert members(run)["ticket.md"] == (run / "ticket.md").read_bytes()
    before = set(members(run))
    assert cli("ticket", "--no-run-env", "--for", "generic", run).code in (0, None)
    assert "### What happened" in (run / "ticket.md").read_text()
    assert set(members(run)) == before
    assert list(run.glob(".ticket*")) == []


def test_it_has_the_whole_structured_log_and_nothing_is_sent(cli, tmp_path, monkeypatch):
    def connect(*_arguments):
        raise AssertionError("something is sent")

    monkeypatch.setattr(socket.socket, "connect", connect)
    run = unpack("bad-gb_item", tmp_path)
    assert cli("ticket", "--no-run-env", run).code in (0, None)
    made, logs = members(run), list(run.rglob("structured/*.log"))
    assert logs
    for log in logs:
        texts = made[str(log.relative_to(run))], log.read_bytes()
        records, recorded = (re.findall(rb"(?m)^V\d{4} [\d:.]+ \d+", text) for text in texts)
        assert records == recorded != []
        assert texts[0].count(b"\n") == texts[1].count(b"\n")


@pytest.mark.parametrize("name", ["ticket.md", "ticket.zip"])
def test_what_is_not_ours_stays(cli, run, tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine")
    assert cli("ticket", "--no-run-env", "-o", out, run).code == 2
    assert f"{out / name} exists and is no ticket of traceview" in cli.err
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == "mine"


def test_a_link_is_not_written_through(cli, run, tmp_path):
    other = tmp_path / "other.md"
    other.write_text(bundle.MARK)
    (run / "ticket.md").symlink_to(other)
    assert cli("ticket", "--no-run-env", run).code == 2
    assert other.read_text() == bundle.MARK


def test_links_and_what_is_no_text_are_left_out(cli, run, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key.txt").write_text("not for you")
    raw = run / "raw" / "cold"
    (raw / "link.txt").symlink_to(outside / "key.txt")
    (raw / "folder").symlink_to(outside)
    (raw / "core.bin").write_bytes(b"\0\1\2" * 50)
    (raw / "<b>|`x`@me\n#1.txt").write_text("odd name\n")
    (run / "trials.json").symlink_to(outside / "key.txt")
    assert cli("ticket", "--no-run-env", run).code in (0, None)
    made = members(run)
    assert not any(b"not for you" in data for data in made.values())
    assert any("odd" in data.decode("utf-8", "replace") for data in made.values())
    page = (run / "ticket.md").read_text()
    assert page.count("| a symbolic link |") == 3
    assert "| `raw/cold/core.bin` | not a text |" in page


def test_a_value_that_is_left_ends_the_command_without_a_ticket(cli, run, monkeypatch):
    (run / "raw" / "cold" / "stderr.txt").write_text("password=hunter2-hunter2\n")
    monkeypatch.setattr(Redaction, "redacted", lambda self, text, file="": text)
    assert cli("ticket", "--no-run-env", run).code == 2
    assert "was left in" in cli.err
    assert "hunter2" not in cli.err
    assert not list(run.glob("*ticket*"))


def test_a_packed_log_that_was_cut_is_taken_as_far_as_it_goes(cli, run):
    drawn = random.Random(1)  # what packs badly, or half of it would have no line
    lines = (f"line {n} password=se{drawn.random()}cret7\n" for n in range(900))
    log = gzip.compress("".join(lines).encode())
    (run / "raw" / "cold" / "log.txt.gz").write_bytes(log[: len(log) // 2])
    assert cli("ticket", "--no-run-env", run).code in (0, None)
    text = gzip.decompress(members(run)["raw/cold/log.txt.gz"]).decode()
    assert text.startswith("line 0 password=[masked password]\nline 1 password=[masked")
    assert "cret7" not in text


def test_nothing_is_taken_out_where_that_was_asked_for(cli, run):
    (run / "raw" / "cold" / "stderr.txt").write_text("password=hunter2-hunter2\n")
    assert cli("ticket", "--no-run-env", "--redact", "none", run).code in (0, None)
    assert members(run)["raw/cold/stderr.txt"] == b"password=hunter2-hunter2\n"
    assert "Nothing was taken out of it" in (run / "ticket.md").read_text()


def test_strict_has_no_name_or_line_of_the_user_s(cli, tmp_path):
    run = unpack("bad-gb_item", tmp_path)
    assert cli("ticket", "--no-run-env", "--redact", "strict", run).code in (0, None)
    made = members(run)
    assert not any(name.startswith("raw/sources/") for name in made)
    for name, data in made.items():
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        for word in ("Quantiser", "gb_item", "peak = y.abs().max().item()", "x * self.scale"):
            assert word not in text, (word, name)
    log = next(data for name, data in made.items() if "/structured/" in name).decode()
    assert "user_class_1" in log
    assert "user_file_1.py" in log
    assert "torch.ops.aten.tanh.default" in log
    events = next(data for name, data in made.items() if name.endswith(".jsonl")).decode()
    assert all(json.loads(line) for line in events.splitlines())


def test_its_report_links_to_nothing_that_is_not_in_the_archive(cli, run):
    index = run / "tlparse" / "cold" / "0" / "index.html"
    index.parent.mkdir(parents=True)
    index.write_text("tlparse's")
    assert cli("ticket", "--no-run-env", run).code in (0, None)
    made = members(run)
    assert not any("tlparse" in name for name in made)
    named = made["report.html"].decode().replace("<wbr>", "")
    assert "tlparse/cold" not in named
    assert "raw/cold/stderr.txt" in named


def test_a_post_mortem_has_no_script(cli, run, tmp_path):
    log = next((run / "raw" / "cold").rglob("*.log"), None)
    source = log or unpack("bad-cap_compile_crash", tmp_path / "b") / "raw" / "cold" / "structured"
    cli("postmortem", "-o", tmp_path / "job", "--workers", "1", source)
    assert cli("ticket", "--no-run-env", tmp_path / "job").code in (0, None)
    page = (tmp_path / "job" / "ticket.md").read_text()
    assert "its script was not recorded" in page
    assert "no TORCH_TRACE log (attach it if there is one)" in page
    assert "traceview sweep" not in page


def test_trials_of_a_sweep_are_its_table(cli, run):
    trials = [{"name": f"backend={stage}", "verdict": "slower"} for stage in list(STAGES)[:3]]
    why = "RuntimeError: no file with password=hunter2-hunter2"
    trials.append({"name": "backend=inductor", "verdict": "failed", "why": why})
    lists = dict.fromkeys(("rules", "price", "arguments", "notes"), ())
    empty = dict.fromkeys(Trial.__struct_fields__) | lists | {"apart": False, "pairs": 3}
    made = [
        msgspec.convert({**empty, "settings": (each["name"],), **each}, Trial) for each in trials
    ]
    results = Results(
        target="train.py", created=None, traceview="", baseline="eager", budget_seconds=1.0,
        environment={}, trials=tuple(made), recommended=None, not_tried=(),
    )  # fmt: skip
    (run / "trials.json").write_text(text_of(to_json(results)))
    assert cli("ticket", "--no-run-env", run).code in (0, None)
    page = (run / "ticket.md").read_text()
    assert "Suggested label: `module: inductor`" in page
    assert "not run |" not in page
    assert "no file with password=\\[masked password\\]" in page
    assert not any(b"hunter2" in data for data in members(run).values())
    assert json.loads(members(run)["trials.json"])["baseline"] == "eager"
