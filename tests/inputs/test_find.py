"""Finding logs: files, folders, patterns, links, and what is left out and why."""

import io
import os
import pickle
import socket

import pytest
from logs import FIXTURES, read, structured, textlog
from recordings import unpack

from traceview.inputs import find


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "job"
    (made / "node1").mkdir(parents=True)
    (made / "node1" / "a.bin").write_bytes(structured())
    (made / "notes").write_bytes(textlog())
    return made


def names(found):
    return {source.name: source.kind for source in found.sources}


def test_a_folder_is_searched_to_the_bottom_and_kinds_come_from_content(folder):
    found = find([str(folder)])
    assert names(found) == {"node1/a.bin": "structured", "notes": "textlog"}
    assert found.skipped == found.damaged == []


def test_every_recorded_log_is_recognised():
    kinds = names(find([str(FIXTURES / "structured"), str(FIXTURES / "textlogs")]))
    traces = {n for n, kind in kinds.items() if kind == "structured"}
    assert traces == {n for n in kinds if ".trace." in n or "/structured/" in n}
    assert {kind for n, kind in kinds.items() if n not in traces} == {"textlog", "stderr"}
    mixed = {n for n, kind in kinds.items() if kind == "stderr"}
    assert all("noise.stderr" in n or "autotune.stderr" in n or "training" in n for n in mixed)


def test_a_source_can_be_opened_elsewhere(folder):
    source = find([str(folder)]).sources[0]
    assert read(pickle.loads(pickle.dumps(source))) == structured()
    assert source.path == folder / "node1" / "a.bin"
    assert source.size == len(structured())


def test_a_pattern_finds_files_and_folders(folder):
    assert list(names(find([f"{folder}/no*"]))) == [f"{folder}/node1/a.bin", f"{folder}/notes"]
    assert list(names(find([f"{folder}/**/*.bin"]))) == ["a.bin"]


def test_several_arguments_keep_their_names_apart(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes").write_bytes(textlog("breaks"))
    found = find([str(folder), str(other), str(folder / "notes")])
    assert set(names(found)) == {f"{folder}/node1/a.bin", f"{folder}/notes", f"{other}/notes"}


def test_what_is_not_there_is_said(tmp_path):
    found = find([str(tmp_path / "nothing")])
    assert found.sources == []
    assert [entry.reason for entry in found.skipped] == ["there is no such file"]


def test_an_empty_folder_is_no_error(tmp_path):
    found = find([str(tmp_path)])
    assert found.sources == found.skipped == found.damaged == []


def test_an_empty_file_is_a_source_of_its_own_kind(tmp_path):
    (tmp_path / "rank_0.log").touch()
    assert names(find([str(tmp_path)])) == {"rank_0.log": "empty"}


def test_links_that_lead_round_are_followed_once(folder):
    (folder / "node1" / "up").symlink_to(folder)
    (folder / "same").symlink_to(folder / "notes")
    (folder / "nowhere").symlink_to(folder / "gone")
    found = find([str(folder)])
    assert set(names(found)) == {"node1/a.bin", "notes"}
    assert [entry.name for entry in found.damaged] == ["nowhere"]


def test_pipes_and_sockets_are_not_opened(folder):
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "socket"))
    found = find([str(folder)])
    assert {(s.name, s.reason) for s in found.skipped} == {
        ("pipe", "it is no file"),
        ("socket", "it is no file"),
    }


def test_a_name_that_is_no_utf8_can_be_shown_and_opened(tmp_path):
    (tmp_path / os.fsdecode(b"rank\xff.log")).write_bytes(structured())
    (source,) = find([str(tmp_path)]).sources
    assert source.name == "rank\N{REPLACEMENT CHARACTER}.log"
    assert read(source) == structured()


def test_the_same_bytes_are_read_once(folder):
    (folder / "copy.log").write_bytes(structured())
    found = find([str(folder)])
    assert set(names(found)) == {"copy.log", "notes"}
    assert [(s.name, s.reason) for s in found.skipped] == [
        ("node1/a.bin", "the same bytes as copy.log")
    ]


def test_a_longer_log_with_the_same_beginning_is_another_log(folder):
    (folder / "longer.log").write_bytes(structured() + structured("breaks"))
    assert {"longer.log", "node1/a.bin"} <= set(names(find([str(folder)])))


def test_a_log_that_begins_far_inside_foreign_text_is_found(tmp_path):
    foreign = b"".join(b"epoch %d: loss 0.1\n" % number for number in range(60_000))
    (tmp_path / "output").write_bytes(foreign + textlog() * 20 + foreign)
    assert names(find([str(tmp_path)])) == {"output": "stderr"}


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        (b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [', "x", "kineto"),
        (b'[{"ph": "X", "cat": "cpu_op", "name": "aten::mm"', "x", "kineto"),
        (b'{"traceEvents":[\n{"ph":"X","cat":"kernel"', "x.json", "kineto"),
        (b'[{"name": "dynamo", "ph": "B", "cat": "dynamo_timed"', "x", "chromium"),
        (b'{"event": "process", "t": 1.0, "pid": 1}\n', "x", "events"),
        (b"Traceback (most recent call last):\n  File", "x", "stderr"),
        (b"AUTOTUNE mm(64x64, 64x64)\n", "x", "stderr"),
        (b"step 1\nstep 2\n", "slurm-12.out", "stderr"),
    ],
)
def test_kinds(tmp_path, text, name, kind):
    (tmp_path / name).write_bytes(text)
    assert names(find([str(tmp_path)])) == {name: kind}


@pytest.mark.parametrize(
    ("text", "name"),
    [(b"import torch\n", "train.py"), (b"\0\1\2\3" * 100, "weights.log"), (b"{}", "a.json")],
)
def test_what_holds_nothing_of_torch_is_left_out_and_said(tmp_path, text, name):
    (tmp_path / name).write_bytes(text)
    found = find([str(tmp_path)])
    assert found.sources == []
    assert [s.name for s in found.skipped] == [name]


def test_of_a_run_folder_the_raw_logs_of_its_passes_are_read(tmp_path):
    run = unpack("good-gb_item", tmp_path / "runs")
    found = find([str(tmp_path / "runs")])
    assert {source.run for source in found.sources} == {"run"}
    kinds = {source.kind for source in found.sources}
    assert {"manifest", "events", "structured", "textlog", "kineto"} <= kinds
    assert all(n == "run/run.json" or n.startswith("run/raw/cold/") for n in names(found))
    assert {source.run for source in find([str(run)]).sources} == {"."}


def test_a_run_folder_in_an_archive_is_one_too(scratch):
    found = find([str(FIXTURES / "runs" / "good-gb_item.tar.xz")], scratch)
    assert {source.run for source in found.sources} == {"good-gb_item.tar.xz!/run"}


def test_of_a_tlparse_folder_its_raw_log_is_read(tmp_path):
    out = tmp_path / "tl_out"
    (out / "-_0_0_0").mkdir(parents=True)
    (out / "raw.log").write_bytes(structured())
    (out / "compile_directory.json").write_text("{}")
    (out / "raw.jsonl").write_text('{"string_table": []}')
    (out / "chromium_events.json").write_text('[{"ph": "B", "cat": "dynamo_timed"}]')
    (out / "-_0_0_0" / "dynamo_guards.txt").write_text("{}")
    found = find([str(tmp_path)])
    assert names(found) == {"tl_out/raw.log": "structured"}
    assert found.skipped == []
    (out / "raw.log").unlink()
    assert names(find([str(tmp_path)])) == {"tl_out/chromium_events.json": "chromium"}


def test_standard_input_is_kept_and_recognised(scratch):
    found = find(["-"], scratch, io.BytesIO(structured()))
    assert names(found) == {"stdin": "structured"}
    assert read(found.sources[0]) == structured()


def test_standard_input_without_a_place_to_keep_it_is_skipped():
    found = find(["-"], stdin=io.BytesIO(structured()))
    assert found.sources == []
    assert len(found.skipped) == 1


def test_the_scratch_folder_itself_is_not_searched(tmp_path):
    scratch = tmp_path / "out" / "scratch"
    scratch.mkdir(parents=True)
    (scratch / "old").write_bytes(structured())
    assert find([str(tmp_path)], scratch).sources == []


def test_urls_are_opened_by_fsspec():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/job/rank_0.log", structured())
    memory.pipe("/job/deep/notes", textlog())
    try:
        found = find(["memory://job"])
        assert names(found) == {"rank_0.log": "structured", "deep/notes": "textlog"}
        assert all(source.path is None and source.stamp for source in found.sources)
        assert read(found.sources[1]) == structured()
        assert names(find(["memory://job/*.log"])) == {"rank_0.log": "structured"}
        assert find(["memory://job/gone"]).damaged[0].kind == "unreadable_file"
    finally:
        memory.rm("/job", recursive=True)
