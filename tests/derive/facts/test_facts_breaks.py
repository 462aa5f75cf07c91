"""Where graphs break: whose line, which kind, how often, what it costs, and in which pass."""

import json

import pytest
from facts import with_facts

from traceview.derive.facts.rows import measured_pass, rows
from traceview.rules import catalogue, run_rules
from traceview.tables import Tables, from_rows

ME, LIB = "/u/train.py", "/v/lib/python3.11/site-packages/metrics/core.py"
TORCH = "/v/lib/python3.11/site-packages/torch/optim/optimizer.py"
RULES = {rule.name: rule for rule in catalogue()}


def made(**rows_by_table):
    frames = {
        name: from_rows(name, [{"pass": "cold", **row} for row in found])
        for name, found in rows_by_table.items()
    }
    return with_facts(Tables(frames))


def broken(*stack, key="cold:1:0:0/0", **columns):
    """A break at the inner end of ``stack``: (file, line, function, code)."""
    names = ("file", "line", "function", "code")
    frames = [dict(zip(names, frame, strict=True)) for frame in stack]
    return {
        "compile_key": key, "compile_id": key.rpartition(":")[2], "gb_id": "GB0124",
        "gb_type": "Unsupported Tensor.item()", "reason": "Unsupported Tensor.item()",
        "origin": "structured", "frame_skipped": False, "user_stack": json.dumps(frames), **columns,
    }  # fmt: skip


LINE = (ME, 7, "forward", "p = x.item()")


def sites(tables):
    return tables["break_sites"].to_dicts()


def test_one_site_for_all_records_of_one_reason():
    logged = broken(LINE, raw_line=3)
    text = broken(LINE, origin="text", raw_line=90, hints=["Use capture_scalar_outputs"])
    (site,) = sites(made(graph_breaks=[text, logged, broken(LINE, key="cold:1:0:0/1")]))
    assert (site["file"], site["line"], site["function"]) == (ME, 7, "forward")
    assert (site["times"], site["records"], site["raw_line"]) == (2, 3, 3)
    assert (site["kinds"], site["user_code"]) == (["item"], "p = x.item()")
    assert site["compile_keys"] == ["cold:1:0:0/0", "cold:1:0:0/1"]


def test_a_library_that_the_users_line_calls():
    (site,) = sites(made(graph_breaks=[broken(LINE, (LIB, 3, "watch", "return t.item()"))]))
    assert (site["file"], site["line"]) == (ME, 7)
    assert (site["inside_file"], site["inside_line"]) == (LIB, 3)
    assert (site["user_code"], site["broken_code"]) == ("p = x.item()", "return t.item()")


def test_each_rank_has_its_own_site_and_torchs_own_are_marked():
    two = [broken(LINE, rank=rank, key=f"cold:{rank}:0:0/0") for rank in (0, 1)]
    inside = broken((TORCH, 5, "step", "x.item()"), gb_type="other", gb_id=None, rank=0)
    found = [(row["rank"], row["in_torch"]) for row in sites(made(graph_breaks=[*two, inside]))]
    assert found == [(0, False), (1, False), (0, True)]


@pytest.mark.parametrize(
    ("columns", "kinds"),
    [
        ({"gb_id": "GB0170", "gb_type": "Data-dependent branching"}, ["data_dependent"]),
        ({"gb_id": "GB0059", "context": "builtin operator `print`"}, ["io"]),
        ({"gb_id": "GB0036", "gb_type": "Dynamic shape operator"}, ["dynamic_shape"]),
        ({"gb_id": "GB0025"}, ["asked"]),
        ({"gb_id": "GB0098"}, ["disabled"]),
        ({"gb_id": "GB0123"}, ["backward"]),
        ({"gb_id": "GB0007", "context": "module: torch.optim.sgd"}, ["optimizer"]),
        ({"gb_id": "GB0090", "context": "unsupported operator: my.twist.default"}, ["custom_op"]),
        ({"gb_id": "GB7000"}, ["secondary"]),
        ({"gb_id": "GB0007", "context": "module: zlib, qualname: crc32"}, ["other"]),
    ],
)
def test_kinds(columns, kinds):
    row = broken(LINE, **{"gb_type": "x", "reason": "x", **columns})
    (site,) = sites(made(graph_breaks=[row]))
    assert site["kinds"] == kinds


def test_where_breaks_were_not_logged_there_is_no_table():
    tables = made(compiles=[])
    assert not tables.has("break_sites")
    assert not tables.has("break_costs")
    assert sites(made(graph_breaks=[])) == []


def test_the_cost_of_a_line_is_a_row():
    tables = made(
        graph_breaks=[broken(LINE)],
        step_counts=[{"stance": "compiled", "gap_ms": 0.4, "gaps": 1.0, "compiled_regions": 2.0,
                      "step_ms": 2.0}],
        accounting=[{"stance": "compiled", "category": "graph_break", "kind": "idle", "ms": 0.4,
                     "clock": "host"},
                    {"stance": "compiled", "category": "overhead_compiled_region",
                     "kind": "overhead", "ms": 0.2, "clock": "host"}],
    )  # fmt: skip
    (cost,) = tables["break_costs"].to_dicts()
    assert (cost["file"], cost["line"], cost["refused"]) == (ME, 7, False)
    assert cost["ms"] == pytest.approx(0.4 + 0.2 / 2)
    assert (cost["basis"], cost["lines"], cost["clock"]) == ("parts", 1, "host")


def test_findings_are_about_the_start_that_is_shown():
    """A start of a job without breaks is not given those of the others."""
    other = broken(LINE, key="logs.2:1:0:0/0")
    tables = made(
        compiles=[{"pass": name, "compile_key": f"{name}:1:0:0/0"} for name in ("logs", "logs.2")],
        graph_breaks=[{"pass": "logs.2", **other}],
    )
    assert measured_pass(tables) == "logs"
    assert rows(tables, "break_sites") == []
    assert run_rules(tables, [RULES["gb-item"]])[0] == ()
    shown = made(compiles=[{"pass": "logs"}], graph_breaks=[{"pass": "logs", **other}])
    assert len(run_rules(shown, [RULES["gb-item"]])[0]) == 1


def test_a_break_that_only_the_metrics_hold():
    compiled = {"compile_key": "cold:1:0:0/0", "compile_id": "0/0", "outcome": "ok"}
    code = {"co_name": "forward", "co_filename": ME, "co_firstlineno": 5}
    reasons = ["'skip function graph_break in file /torch/_dynamo/decorators.py'"]
    others = ["<class 'torch._dynamo.exc.TensorifyScalarRestartAnalysis'>"]
    other = {**compiled, "compile_key": "cold:1:0:1/0", "compile_id": "1/0"}
    rows = [
        {**compiled, **code, "restart_reasons": reasons},
        {**other, **code, "restart_reasons": others},
    ]
    (site,) = sites(made(compiles=rows, graph_breaks=[]))
    assert (site["file"], site["function"], site["compile_keys"]) == (
        ME,
        "forward",
        ["cold:1:0:0/0"],
    )
    assert "skip function graph_break" in site["reason"]
    (same,) = sites(made(compiles=rows, graph_breaks=[broken(LINE)]))
    assert (same["line"], same["records"]) == (7, 1)
