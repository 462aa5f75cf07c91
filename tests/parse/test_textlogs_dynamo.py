import json

import pytest
from textlog_runs import HEAD, lines, read, read_recorded


def test_graph_breaks_carry_reason_id_and_the_users_stack(tmp_path):
    found = read_recorded(tmp_path, "breaks")["graph_breaks"].to_dicts()

    assert [(row["compile_id"], row["gb_id"], row["user_line"]) for row in found] == [
        ("0/0", "GB0059", 17),
        ("1/0", "GB0170", 18),
        ("2/0", "GB0124", 19),
        ("4/0", "GB0025", 28),
    ]
    assert [row["frame_skipped"] for row in found] == [False, False, False, True]
    assert found[0]["explanation"].startswith("Dynamo does not know how to trace builtin operator")
    assert found[3]["explanation"] == "User-inserted graph break. Message: <b>on purpose</b>"
    innermost = json.loads(found[0]["user_stack"])[-1]
    assert innermost["function"] == "noisy"
    assert innermost["code"] == """print("<script>alert('markup & more')</script>")"""
    assert {row["origin"] for row in found} == {"text"}


def test_a_break_knows_its_compile_and_its_place_in_the_log(tmp_path):
    row = read_recorded(tmp_path, "breaks")["graph_breaks"].row(0, named=True)

    pid = row["compile_key"].split(":")[1]
    assert row["compile_key"] == f"cold:{pid}:0:0/0"
    text = (tmp_path / row["raw_file"]).read_text().splitlines()[row["raw_line"] - 1]
    assert text.endswith("[__graph_breaks] Graph break in user code at /project/scenarios.py:17")
    assert f" {pid} " in text


def test_recompiles_list_every_cache_entry_newest_first(tmp_path):
    found = read_recorded(tmp_path, "recompiles")["recompiles"].to_dicts()

    widths = [row for row in found if row["compile_id"] == "0/2"]
    assert [(r["order"], r["failed_compile_id"], r["old"], r["new"]) for r in widths] == [
        (0, "0/1", "7", "9"),
        (1, "0/0", "4", "9"),
    ]
    assert {(r["kind"], r["source_name"], r["dim"], r["co_name"]) for r in widths} == {
        ("size", "x", 0, "widths")
    }
    step = next(row for row in found if row["compile_id"] == "1/1")
    assert (step["kind"], step["source_name"], step["old"]) == ("module_int", "self.step", "0")
    assert (step["user_line"], step["user_code"]) == (45, "self.step += 1")


def test_a_rank_told_late_counts_for_the_process(tmp_path):
    tables = read_recorded(tmp_path, "ranks")

    breaks = tables["graph_breaks"]
    assert breaks["compile_id"].to_list() == ["0/0", "0/1"]
    assert breaks["rank"].to_list() == [0, 0]
    assert breaks["user_stack"].null_count() == 1  # torch leaves the stack of a duplicate out
    assert breaks["user_line"].to_list() == [130, 130]
    assert tables["recompiles"]["co_name"].to_list() == [
        "loud",
        "torch_dynamo_resume_in_loud_at_130",
    ]


def test_two_messages_of_one_millisecond_are_taken_apart(tmp_path):
    prefix = f"V{HEAD}_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks]"
    text = "Graph break in user code at /p/a.py:{}\nGraph Break Reason: why {}\n  Explanation: e"
    logs = lines(prefix, text.format(3, "one")) + lines(prefix, text.format(4, "two"))

    tables, _ = read(tmp_path, logs=logs)

    found = tables["graph_breaks"].select("user_line", "gb_type", "raw_line").rows()
    assert found == [(3, "why one", 1), (4, "why two", 4)]


def test_verbose_recompiles_name_their_entries(tmp_path):
    prefix = f"V{HEAD}_dynamo/guards.py:1] [5/1] [__recompiles_verbose]"
    text = (
        "Recompiling function fn in /p/s.py:25\n"
        "    triggered by the following guard failure(s):\n"
        "    guard 0 failures:\n"
        "    - 5/0: tensor 'x' size mismatch at index 0. expected 4, actual 7"
    )
    tables, _ = read(tmp_path, logs=lines(prefix, text), asked="recompiles_verbose")

    row = tables["recompiles"].row(0, named=True)
    assert (row["co_name"], row["co_firstlineno"], row["failed_compile_id"]) == ("fn", 25, "5/0")
    assert row["raw_line"] == 4


@pytest.mark.parametrize("asked", ["fusion", "-graph_breaks", ""])
def test_a_table_that_was_not_asked_for_is_absent(tmp_path, asked):
    tables, _ = read(tmp_path, logs="", asked=asked)
    assert "graph_breaks" not in tables


def test_a_table_that_was_asked_for_is_there_and_empty(tmp_path):
    tables, _ = read(tmp_path, logs="", asked="+graph_breaks,perf_hints")
    assert tables["graph_breaks"].height == 0
    assert tables["perf_hints"].height == 0
    assert "fusions" not in tables
