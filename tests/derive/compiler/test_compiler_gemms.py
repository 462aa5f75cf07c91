"""GEMM epilogues and prologues on one small graph: fused, left apart, lost to the library."""

import pytest

from traceview.derive.compiler.lowered import lowered_graphs
from traceview.derive.compiler.notes import fusion_notes
from traceview.tables import Tables, from_rows

KEY = {"pass": "cold", "rank": None, "compile_key": "cold:1:0:0/0", "compile_id": "0/0"}
SIZE = 64 * 64 * 2
GRAPH = """
class <lambda>(torch.nn.Module):
    def forward(self, x: "f16[64, 64][64, 1]cuda:0", w: "f16[64, 64][64, 1]cuda:0"):
        # File: /home/me/train.py:7 in forward, code: return (x.neg() @ w).relu()
        neg: "f16[64, 64][64, 1]cuda:0" = torch.ops.aten.neg.default(x);  x = None
        mm: "f16[64, 64][64, 1]cuda:0" = torch.ops.aten.mm.default(neg, w);  neg = w = None
        relu: "f16[64, 64][64, 1]cuda:0" = torch.ops.aten.relu.default(mm);  mm = None
        return (relu,)
"""


def candidate(name, kind, *origins):
    return {
        "decision": "candidate",
        "node1": name,
        "kind": kind,
        "origins": list(origins) or None,
    }


def notes_of(gemm, *decisions, tuned=(), graph=GRAPH):
    nodes = [candidate("op0", "pointwise", "neg"), candidate("op1", gemm)]
    rows = [*nodes, candidate("op2", "pointwise", "relu"), *decisions]
    graphs = [
        {"kind": "post_grad", "aot_id": "0_inference", "text": graph},
        {"kind": "output_code", "aot_id": "0_inference", "text": ""},
    ]
    tables = Tables(
        {
            "graphs": from_rows("graphs", [KEY | row for row in graphs]),
            "fusions": from_rows(
                "fusions", [KEY | {"graph_index": 0, "times": 1} | row for row in rows]
            ),
            "autotune_choices": from_rows("autotune_choices", [KEY | row for row in tuned]),
        }
    )
    found = fusion_notes(tables, lowered_graphs(tables))
    return {note["kind"]: note for note in found if note["kind"] != "fused"}


@pytest.mark.parametrize(
    ("first", "second", "kind", "op"),
    [
        ("op1", "op2", "epilogue_fused", "aten.relu"),
        ("op0", "op1", "prologue_fused", "aten.neg"),
    ],
)
def test_what_was_fused_with_a_template(first, second, kind, op):
    found = notes_of("other", {"decision": "fused", "node1": first, "node2": second})
    assert set(found) == {kind}
    assert found[kind]["ops"] == [op]
    assert found[kind]["lines"] == ["/home/me/train.py:7"]
    assert found[kind]["bytes_saved"] == 2 * SIZE  # what passes between them: written and read


@pytest.mark.parametrize(
    ("speedup", "kind", "said"),
    [
        (1.25, "epilogue_fused", "fused 1.25× as fast as apart"),
        (0.5, "epilogue_apart", "fused 0.50× as fast as apart: left apart"),
        (0.0, "epilogue_apart", "no fused kernel could be timed"),
        (None, "epilogue_apart", "no fused kernel could be timed"),
    ],
)
def test_a_benchmark_decides_and_is_quoted(speedup, kind, said):
    row = {"decision": "benchmarked", "node1": "{'buf1'}", "node2": "{'buf2'}", "speedup": speedup}
    found = notes_of("other", row)
    assert set(found) == {kind}
    assert said in found[kind]["text"]


def test_a_scan_is_no_template():
    """Torch logs it as it logs a template: by its name alone."""
    scan = GRAPH.replace("mm.default(neg, w)", "cumsum.default(neg, -1)")
    for first, second in (("op1", "op2"), ("op0", "op1")):
        row = {"decision": "fused", "node1": first, "node2": second}
        assert notes_of("other", row, graph=scan) == {}


def test_buffers_are_no_nodes_where_their_numbers_may_differ():
    row = {"decision": "benchmarked", "node1": "{'buf1'}", "node2": "{'buf2'}", "speedup": 2.0}
    gap = candidate("op7", "pointwise", "relu")  # op3 to op6 were taken out: buffers moved up
    assert notes_of("other", row, gap) == {}
    assert notes_of("other", row, candidate("not a number", "pointwise", "relu")) == {}


def test_a_library_call_is_not_tried_and_the_setting_is_named():
    found = notes_of("extern")
    assert set(found) == {"epilogue_not_tried", "prologue_not_tried"}
    assert found["epilogue_not_tried"]["setting"] == "torch._inductor.config.max_autotune_gemm"
    assert found["prologue_not_tried"]["setting"].endswith("prologue_fusion")
    assert {note["bytes_saved"] for note in found.values()} == {2 * SIZE}


def test_an_input_that_others_read_too_is_no_prologue():
    used_twice = GRAPH.replace("return (relu,)", "return (relu, neg)")
    assert set(notes_of("extern", graph=used_twice)) == {"epilogue_not_tried"}


def test_a_gemm_that_won_the_autotuning_is_named():
    tuned = [
        {"op": "mm", "choice": "mm", "backend": "aten", "is_best": True},
        {"op": "mm", "choice": "triton_mm_3", "backend": "triton", "is_best": False},
    ]
    found = notes_of("extern", tuned=tuned)
    assert set(found) == {"epilogue_apart", "prologue_apart"}
    assert "autotuning chose the library's GEMM (mm)" in found["epilogue_apart"]["text"]
    assert found["epilogue_apart"]["setting"] is None


def test_logs_that_count_graphs_differently_are_not_joined():
    extra = {"decision": "refused", "node1": "op0", "node2": "op2", "graph_index": 1}
    assert notes_of("extern", extra) == {}


def test_pairs_without_end_are_counted_and_not_looked_at(monkeypatch):
    monkeypatch.setattr("traceview.derive.compiler.notes.MOST_PAIRS", 1)
    pairs = [("op0", "op2"), ("op2", "op0")]
    refused = [
        {"decision": "refused", "node1": first, "node2": second, "reason": "will create cycle"}
        for first, second in pairs
    ]
    graphs = [
        KEY | {"kind": "post_grad", "aot_id": "0_inference", "text": GRAPH},
        KEY | {"kind": "output_code", "aot_id": "0_inference", "text": ""},
    ]
    rows = [candidate("op0", "pointwise", "neg"), candidate("op2", "pointwise", "relu"), *refused]
    rows = [KEY | {"graph_index": 0, "times": 1} | row for row in rows]
    tables = Tables({"graphs": from_rows("graphs", graphs), "fusions": from_rows("fusions", rows)})
    found = [n for n in fusion_notes(tables, lowered_graphs(tables)) if n["kind"] == "refused"]
    assert len(found) == 2
    assert [n["text"] for n in found if not n["ops"]] == [
        "1 more pairs stay apart: they were not looked at"
    ]
