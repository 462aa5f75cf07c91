import gzip
import json
import shutil

import polars as pl
import pytest
from textlog_runs import RECORDED, make, recorded

import traceview.parse as parse
from traceview.parse import load_or_parse, parse_run, store
from traceview.parse.damage import Damage
from traceview.parse.keys import CompileKeys
from traceview.parse.merge import combine, without_device
from traceview.parse.textlogs import read_pass
from traceview.tables import from_rows


def run_of(folder, name, *, trace=True):
    """A run folder as the collector leaves it, with the logs of a recorded scenario."""
    logs, stderr = recorded(name)
    run, record = make(folder, logs=logs, stderr=stderr)
    if trace:
        log = gzip.decompress((RECORDED / f"{name}.trace.log.gz").read_bytes())
        structured = run.raw(record) / "structured"
        structured.mkdir()
        (structured / "dedicated_log_torch_trace_abc.log").write_bytes(log)
    run.save()
    return run


def add_process(run, pid, rank):
    event = {"event": "process", "t": 1.0, "pid": pid, "rank": rank}
    path = run.raw(run.manifest.passes[0]) / f"events-{pid}.jsonl"
    path.write_text(json.dumps(event) + "\n")


def pid_of(tables, name):
    return int(tables[name]["compile_key"][0].split(":")[1])


def test_every_log_of_a_pass_ends_up_in_one_set_of_tables(tmp_path):
    tables = parse_run(run_of(tmp_path, "autotune"))

    assert tables["runs"].height == 1
    assert tables["compiles"]["compile_id"].to_list() == ["0/0"]
    key = tables["compiles"]["compile_key"][0]
    assert tables["fusions"].filter(decision="fused")["compile_key"].to_list() == [key]
    assert not tables.has("kernels")
    assert tables.has("unreadable")


def test_the_whole_ranking_is_preferred_to_the_winner_alone(tmp_path):
    run = run_of(tmp_path, "autotune")
    whole = parse_run(run)["autotune_choices"]
    assert whole["backend"].to_list() == ["cpp", "aten"]
    assert whole["raw_file"].unique().to_list() == ["raw/cold/stderr.txt"]

    (run.raw(run.manifest.passes[0]) / "stderr.txt").unlink()
    winner = parse_run(run)["autotune_choices"]
    assert winner["is_best"].to_list() == [True]


def test_tables_of_stderr_learn_their_compile_from_the_structured_log(tmp_path):
    run = run_of(tmp_path, "autotune")
    stderr = run.raw(run.manifest.passes[0]) / "stderr.txt"
    stderr.write_bytes(
        b"\n".join(line for line in stderr.read_bytes().split(b"\n") if b".py:" not in line)
    )

    found = parse_run(run)["autotune_choices"]
    assert found.height == 2
    assert found["compile_id"].to_list() == ["0/0", "0/0"]


def test_the_structured_log_speaks_first_of_graph_breaks(tmp_path):
    both = parse_run(run_of(tmp_path / "both", "resets"))["graph_breaks"]
    assert both["origin"].to_list() == ["structured"] * both.height

    text = parse_run(run_of(tmp_path / "text", "resets", trace=False))["graph_breaks"]
    assert text["origin"].to_list() == ["text", "text"]
    assert text["user_line"].to_list() == both["user_line"].to_list()


def test_text_of_two_compiles_of_one_name_is_told_apart_by_time(tmp_path):
    run = run_of(tmp_path, "resets")
    tables = parse_run(run)
    epochs = dict(tables["compiles"].select("compile_key", "co_name").rows())
    keys = [key for key in epochs if key.endswith(":0/0")]
    assert [key.split(":")[2] for key in keys] == ["0", "1"]

    names = CompileKeys("cold", tables["compiles"])
    text = read_pass(run, run.manifest.passes[0], Damage(), names)["graph_breaks"]
    assert [epochs[key] for key in text["compile_key"]] == ["before", "after"]


def test_ranks_that_the_collector_knows_reach_every_table(tmp_path):
    run = run_of(tmp_path, "autotune")
    pid = pid_of(parse_run(run), "compiles")
    add_process(run, pid, 3)

    tables = parse_run(run)
    for name in ("runs", "compiles", "compile_phases", "fusions", "perf_hints", "autotune_choices"):
        assert tables[name]["rank"].unique().to_list() == [3], name


def test_passes_are_put_one_after_the_other(tmp_path):
    run = run_of(tmp_path, "autotune")
    first = run.manifest.passes[0]
    shutil.copytree(run.raw(first), tmp_path / "raw" / "warm")
    run.manifest.passes.append(type(first)("warm", "raw/warm", environment=first.environment))

    tables = parse_run(run)
    assert tables["runs"]["pass"].to_list() == ["cold", "warm"]
    assert tables["fusions"]["pass"].unique(maintain_order=True).to_list() == ["cold", "warm"]
    assert tables["compiles"]["compile_key"].n_unique() == 2


def test_a_run_without_logs_says_not_recorded(tmp_path):
    run, record = make(tmp_path)
    tables = parse_run(run)
    assert set(tables) == {"runs", "unreadable"}
    assert record.name == tables["runs"]["pass"][0]


def test_damage_is_counted_with_its_place(tmp_path):
    run, _ = make(tmp_path, logs="<script>no log line</script>\nhalf a li", stderr=b"\x00\xff")
    found = (
        parse_run(run)["unreadable"].select("file", "kind", "times", "first_line", "example").rows()
    )
    assert found == [
        ("raw/cold/torch_logs.txt", "foreign_line", 2, 1, "<script>no log line</script>"),
        ("raw/cold/torch_logs.txt", "truncated", 1, 2, "the last line has no end"),
    ]


@pytest.mark.parametrize("covered", [True, False])
def test_a_rank_without_structured_log_keeps_its_text(covered):
    def broke(pid, origin):
        return {"pass": "cold", "compile_key": f"cold:{pid}:0:0/0", "origin": origin}

    structured = {
        "graph_breaks": from_rows("graph_breaks", [broke(1, "structured")] if covered else [])
    }
    text = {"graph_breaks": from_rows("graph_breaks", [broke(1, "text"), broke(2, "text")])}

    merged = combine(structured, text)["graph_breaks"]["origin"].to_list()
    assert merged == (["structured", "text"] if covered else ["text", "text"])


def test_tables_are_kept_until_the_raw_files_change(tmp_path, monkeypatch):
    run = run_of(tmp_path, "autotune", trace=False)
    first = load_or_parse(run)
    monkeypatch.setattr(parse, "parse_run", lambda run: pytest.fail("parsed again"))
    again = load_or_parse(run)
    assert set(again) == set(first)
    for name in first:
        assert again[name].equals(first[name]), name
    monkeypatch.undo()

    add_process(run, 12, 0)
    assert load_or_parse(run)["runs"]["pid"].to_list() == [12]


def test_damaged_or_unwritable_tables_are_parsed_again(tmp_path, monkeypatch):
    run = run_of(tmp_path, "autotune", trace=False)
    load_or_parse(run)
    (run.tables_folder / "fusions.parquet").write_bytes(b"PAR1 no more")
    assert load_or_parse(run)["fusions"].height == 4

    def refuse(*args, **kwargs):
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", refuse)
    assert load_or_parse(run, refresh=True)["fusions"].height == 4
    assert store.load(run) is None


def test_device_tables_are_there_only_if_a_device_was_seen():
    host = {name: from_rows(name, []) for name in ("cpu_ops", "kernels", "kernel_launches")}
    assert set(without_device(host)) == {"cpu_ops"}
    launched = host | {
        "kernel_launches": from_rows("kernel_launches", [{"name": "cudaGraphLaunch"}])
    }
    assert set(without_device(launched)) == set(launched)


def test_tables_that_two_sources_have_keep_the_rows_of_both():
    from traceview.parse.merge import together
    from traceview.tables import from_rows

    collector = {"memory": from_rows("memory", [{"pass": "cold", "source": "allocator"}])}
    profile = {"memory": from_rows("memory", [{"pass": "cold", "source": "profiler"}])}
    assert together(collector, {}, profile)["memory"]["source"].to_list() == [
        "allocator",
        "profiler",
    ]
