"""Damaged structured logs: what is whole is read, what is not is counted, nothing is made up."""

import gzip
import time

import pytest
from structured_log_tools import PREFIX, artifact, at, kinds_of, read, read_file, record

from traceview.parse.damage import Damage

GRAPH = "class GraphModule:\n    def forward(self):\n        y = torch.sin(x)\n        return y"
BREAK = "Graph break in user code at /p/s.py:3\nGraph Break Reason: Why\n  Explanation: e\n"


def start(frame):
    return record("dynamo_start", {"stack": []}, **at(frame))


def graph(frame, text=GRAPH):
    return record("dynamo_output_graph", {"sizes": {}}, payload=text, **at(frame))


def test_a_log_cut_inside_a_payload_keeps_what_came_before(tmp_path):
    log = start(0) + graph(0) + start(1) + graph(1)[:-30]
    tables, damage = read(tmp_path, log)
    assert tables["compiles"]["compile_id"].to_list() == ["0/0", "1/0"]
    assert tables["graphs"]["text"][0] == GRAPH
    assert kinds_of(damage) == {"truncated": 1}


def test_a_log_cut_inside_an_envelope_is_truncated_not_bad_json(tmp_path):
    tables, damage = read(tmp_path, start(0) + start(1)[:-20])
    assert tables["compiles"].height == 1
    assert kinds_of(damage) == {"truncated": 1}


def test_a_lost_payload_line_is_a_bad_digest(tmp_path):
    broken = graph(0).replace(b"\t    def forward(self):\n", b"")
    tables, damage = read(tmp_path, broken + start(1))
    assert kinds_of(damage) == {"bad_digest": 1}
    assert "def forward" not in tables["graphs"]["text"][0]


def test_foreign_lines_between_records_are_counted_once_each(tmp_path):
    log = start(0) + b"Loading weights: 100%\n\nwarning: x\n" + start(1)
    tables, damage = read(tmp_path, log)
    assert tables["compiles"].height == 2
    assert kinds_of(damage) == {"foreign_line": 2}
    assert damage.frame("logs")["first_line"].to_list() == [2]


def test_a_foreign_line_inside_a_payload_is_stepped_over(tmp_path):
    """The digest proves that the lines before and behind it belong together."""
    lines = graph(0).split(b"\n")
    log = b"\n".join([*lines[:3], b"NCCL INFO hello", *lines[3:]]) + start(1)
    tables, damage = read(tmp_path, log)
    assert tables["graphs"]["text"].to_list() == [GRAPH]
    assert kinds_of(damage) == {"foreign_line": 1}


def test_the_payload_of_a_damaged_envelope_is_not_given_to_the_record_before_it(tmp_path):
    log = graph(0) + graph(1, "stolen\nlines").replace(b"V1120", b"V11x0") + start(2)
    tables, damage = read(tmp_path, log)
    assert tables["graphs"]["text"].to_list() == [GRAPH]
    assert kinds_of(damage) == {"foreign_line": 1}


def test_broken_envelope_json_is_counted_once_and_its_payload_with_it(tmp_path):
    log = start(0) + graph(1).replace(b'{"dynamo', b"{dynamo") + start(2)
    tables, damage = read(tmp_path, log)
    assert tables["compiles"]["compile_id"].to_list() == ["0/0", "2/0"]
    assert tables["graphs"].height == 0
    assert kinds_of(damage) == {"bad_json": 1}


@pytest.mark.parametrize("place", ["payload", "envelope"])
def test_a_byte_that_is_no_utf8_costs_one_character(tmp_path, place):
    if place == "payload":
        log = graph(0, "caf\u00e9 = 1\nend").replace("\u00e9".encode(), b"\xe9")
    else:
        log = record("guard_added_fast", {"expr": "caf!"}, **at(0)).replace(b"caf!", b"caf\xe9")
    tables, damage = read(tmp_path, log + start(1))
    assert "caf\ufffd" in (*tables["symbols"]["expr"], *(t[:4] for t in tables["graphs"]["text"]))
    assert tables["compiles"]["compile_id"].to_list() == ["0/0", "1/0"]
    assert kinds_of(damage)["bad_encoding"] == 1


def test_an_empty_file_is_no_damage(tmp_path):
    tables, damage = read(tmp_path, b"")
    assert tables["compiles"].height == 0
    assert kinds_of(damage) == {}


def test_carriage_returns_in_a_payload_are_kept(tmp_path):
    tables, damage = read(tmp_path, graph(0, "one\r\ntwo\rthree") + start(1))
    assert tables["graphs"]["text"][0] == "one\r\ntwo\rthree"
    assert kinds_of(damage) == {}


def test_a_file_converted_to_crlf_is_read(tmp_path):
    log = (start(0) + graph(0) + start(1)).replace(b"\n", b"\r\n")
    tables, damage = read(tmp_path, log)
    assert tables["graphs"]["text"][0] == GRAPH
    assert kinds_of(damage) == {}


def test_nul_bytes_are_a_foreign_line(tmp_path):
    tables, damage = read(tmp_path, start(0) + b"\0" * 5000 + b"\n" + start(1))
    assert tables["compiles"].height == 2
    assert kinds_of(damage) == {"foreign_line": 1}


def test_a_file_that_starts_inside_a_payload(tmp_path):
    tables, damage = read(tmp_path, graph(0)[-60:] + start(1))
    assert tables["compiles"]["compile_id"].to_list() == ["1/0"]
    assert kinds_of(damage) == {"foreign_line": 1}


def test_blank_lines_cost_next_to_nothing_and_are_counted(tmp_path):
    blank = b"\n" * 3_000_000
    began = time.process_time()
    log = start(0) + blank + start(1) + graph(1) + b"\n\n" + start(2)
    tables, damage = read(tmp_path, log + blank)
    assert time.process_time() - began < 1
    lines = [1, 3_000_002, 3_000_005 + graph(1).count(b"\n")]
    assert tables["compiles"]["raw_line"].to_list() == lines
    assert kinds_of(damage) == {}


def test_a_gigantic_line_is_cut_and_the_rest_is_read(tmp_path, monkeypatch, limit):
    limit(record=10_000)
    monkeypatch.setattr("traceview.parse.cutting.cutter.BLOCK_BYTES", 1_000)
    log = start(0) + b"x" * 50_000 + b"\n" + start(1) + graph(1, "y" * 50_000) + start(2)
    tables, damage = read(tmp_path, log)
    assert tables["compiles"]["compile_id"].to_list() == ["0/0", "1/0", "2/0"]
    assert kinds_of(damage)["too_long"] == 2
    assert tables["compiles"]["raw_line"].to_list() == [1, 3, 6]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_where_blocks_end_does_not_matter(tmp_path, monkeypatch, size):
    log = start(0) + graph(0) + b"foreign\n" + start(1) + graph(1, "a\n\nb\n") + start(2)
    whole, _ = read(tmp_path, log)
    monkeypatch.setattr("traceview.parse.cutting.cutter.BLOCK_BYTES", size)
    pieces, damage = read(tmp_path, log)
    for table in ("compiles", "graphs", "log_records"):
        assert pieces[table].equals(whole[table])
    assert kinds_of(damage) == {"foreign_line": 1}
    assert pieces["graphs"]["text"].to_list() == [GRAPH, "a\n\nb\n"]


def test_a_text_above_the_limit_is_cut_with_a_mark(tmp_path):
    tables, damage = read(tmp_path, graph(0, "z" * 1_500_000))
    text = tables["graphs"]["text"][0]
    assert len(text) < 1_000_100
    assert text.endswith("[cut here: the text goes on]")
    assert kinds_of(damage) == {}


def test_a_packed_file_that_ends_early_gives_what_it_holds(tmp_path):
    path = tmp_path / "cut.log.gz"
    path.write_bytes(gzip.compress(b"".join(start(n) for n in range(500)), 0)[:-100])
    damage = Damage()
    tables = read_file(path, damage)
    assert tables["compiles"].height > 400
    assert kinds_of(damage)["truncated"] >= 1


def test_a_file_that_is_not_there_is_counted(tmp_path):
    damage = Damage()
    assert read_file(tmp_path / "none.log", damage)["compiles"].height == 0
    assert kinds_of(damage) == {"unreadable_file": 1}


@pytest.mark.parametrize(
    "payload",
    ["{", "[]", "null", '{"name": 1}', "[" * 100_000, '{"name":"x","ph":"B","ts":"no","args":{}}'],
)
def test_a_payload_of_the_wrong_shape_is_bad_json(tmp_path, payload):
    log = record("chromium_event", {}, payload=payload, **at(0)) + start(1)
    tables, damage = read(tmp_path, log)
    assert tables["compiles"].filter(compile_id="1/0").height == 1
    assert kinds_of(damage) == {"bad_json": 1}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dynamo_start", {"stack": [3, {"filename": 99, "line": "x"}, None]}),
        ("dynamo_start", {"stack": "no"}),
        ("compilation_metrics", {"co_name": 5, "restart_reasons": 7, "guard_count": 1e99}),
        ("compilation_metrics", {"entire_frame_compile_time_s": 10**400, "start_time": -(10**400)}),
        ("create_symbol", {"symbol": ["s"], "user_stack": 5}),
        ("create_symbol", {"user_stack": [{"filename": -1, "line": -1, "name": None}]}),
        ("str", ["only one"]),
        ("artifact", {"encoding": "json"}),
    ],
)
def test_values_of_the_wrong_type_do_not_stop_the_reading(tmp_path, key, value):
    tables, _ = read(tmp_path, record(key, value, **at(0)) + start(1))
    assert "1/0" in tables["compiles"]["compile_id"].to_list()


def test_context_of_the_wrong_type_is_bad_json(tmp_path):
    log = record("dynamo_start", {"stack": []}, frame_id="zero", frame_compile_id=0)
    tables, damage = read(tmp_path, log + start(1))
    assert tables["compiles"]["compile_id"].to_list() == ["1/0"]
    assert kinds_of(damage) == {"bad_json": 1}


@pytest.mark.parametrize("key", ["artifact", "dynamo_start", "unheard_of"])
def test_an_envelope_nested_without_end_is_refused(tmp_path, key):
    deep = record(key, "HERE", **at(0)).replace(b'"HERE"', b"[" * 200_000 + b"]" * 200_000)
    tables, damage = read(tmp_path, start(1) + deep + start(2))
    assert tables["compiles"]["compile_id"].to_list() == ["1/0", "2/0"]
    assert kinds_of(damage) == {"bad_json": 1}


def test_a_line_of_many_stamps_is_bounded_work(tmp_path):
    log = (PREFIX[:40].encode() * 200_000) + b"\n" + start(0)
    tables, damage = read(tmp_path, log)
    assert tables["compiles"].height == 1
    assert kinds_of(damage) == {"foreign_line": 1}


def test_a_lost_end_leaves_its_phase_without_a_duration(tmp_path):
    def event(name, ph, ts):
        text = f'{{"name": "{name}", "ph": "{ph}", "ts": {ts}, "args": {{}}}}'
        return record("chromium_event", {}, payload=text, **at(0))

    log = event("a", "B", 1) + event("b", "B", 2) + event("a", "E", 9) + event("c", "E", 10)
    tables, damage = read(tmp_path, log)
    rows = tables["compile_phases"].select("name", "duration_us", "depth").rows()
    assert rows == [("a", 8.0, 0), ("b", None, 1)]
    assert kinds_of(damage) == {}


def test_hostile_text_stays_text(tmp_path):
    text = BREAK + "<script>alert(1)</script>\n__import__('os').system('true')"
    tables, _ = read(tmp_path, artifact("dynamo_graph_break_reason", text, **at(0)))
    assert "<script>" in tables["graph_breaks"]["explanation"][0]
