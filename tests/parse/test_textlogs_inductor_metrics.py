import polars as pl
from textlog_runs import HEAD, lines, read, recorded

METRICS = f"I{HEAD}_inductor/compile_fx.py:1655] [0/0] [__inductor_metrics]"
ASKED = "fusion,inductor_metrics"
TEXT = (
    "Graph Metrics:\n"
    "{'num_bytes_accessed': 6291464, 'nodes_num_elem': [(SchedulerNode(name='op0'), 524289), "
    "(FusedSchedulerNode(nodes=op1_op2), 1048577), (ExternKernelSchedulerNode(name='op3'), 0)], "
    "'node_runtimes': [(SchedulerNode(name='op0'), 7), (FusedSchedulerNode(nodes=op1_op2), 0)]}"
)


def test_a_graphs_bytes_and_those_of_its_kernels(tmp_path):
    found, damage = read(tmp_path, logs=lines(METRICS, TEXT), asked=ASKED)
    assert damage.total == 0
    (row,) = found["inductor_metrics"].to_dicts()
    assert (row["compile_id"], row["num_bytes_accessed"], row["raw_line"]) == ("0/0", 6291464, 2)
    assert row["nodes"] == ["op0", "op1_op2", "op3"]
    assert row["node_kinds"][1:] == ["FusedSchedulerNode", "ExternKernelSchedulerNode"]
    assert row["node_bytes"] == [4 * 524289, 4 * 1048577, 0]


def test_forward_and_backward_of_one_millisecond_stay_apart(tmp_path):
    found, _ = read(tmp_path, logs=lines(METRICS, f"{TEXT}\n{TEXT}"), asked=ASKED)
    assert found["inductor_metrics"].height == 2


def test_without_it_nothing_is_said(tmp_path):
    found, _ = read(tmp_path, logs=lines(METRICS, "Graph Metrics:\n{'num_bytes"), asked=ASKED)
    assert found["inductor_metrics"].is_empty()
    (tmp_path / "more").mkdir()
    found, _ = read(tmp_path / "more", logs=b"", asked="fusion")
    assert "inductor_metrics" not in found


def test_every_graph_of_a_real_run(tmp_path):
    logs, _ = recorded("bytes_moved")
    found, damage = read(tmp_path, logs=logs, asked=f"{ASKED},output_code")
    assert damage.total == 0
    metrics = found["inductor_metrics"]
    assert metrics["compile_id"].to_list() == [f"{n}/0" for n in range(11)]
    totals = metrics.select(pl.col("node_bytes").list.sum()).to_series()
    assert (metrics["num_bytes_accessed"] - totals).is_between(0, 7).all()
