"""Bytes of generated kernels beside Inductor's own estimate, where the log has it."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from traceview.derive.limits.generated import GeneratedCode, site_tensors, site_work
from traceview.parse.damage import Damage
from traceview.parse.textlogs import read_pass
from traceview.run import Manifest, PassRecord, Run
from traceview.tables import Tables
from traceview.torchtext.dtypes import size_of

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
LOG = FIXTURES / "textlogs" / "bytes_moved.torch_logs.txt.gz"
CLOSE = 0.02


def test_every_graph_moves_what_inductor_says(tmp_path):
    """C++ kernels hold several scheduler nodes each, so that only a graph's total compares."""
    record = PassRecord(
        "cold", "raw/cold", environment={"TORCH_LOGS": "output_code,inductor_metrics"}
    )
    raw = tmp_path / record.raw
    raw.mkdir(parents=True)
    (raw / "torch_logs.txt").write_bytes(gzip.decompress(LOG.read_bytes()))
    run = Run(tmp_path, Manifest(passes=[record]))
    tables = Tables(read_pass(run, record, Damage()))
    code = GeneratedCode(tables)
    compared = 0
    for row in tables["inductor_metrics"].to_dicts():
        (function,) = code.functions("cold", row["compile_id"])
        found = [
            site_work(site, code.source("cold", site.kernel, row["compile_id"]))
            for site in function.sites
        ]
        assert sum(work.bytes for work in found) == pytest.approx(
            row["num_bytes_accessed"], rel=CLOSE
        )
        compared += 1
    assert compared == 11


def with_estimates():
    """Recorded runs on a GPU; for some of them fixtures/record.py asks for ``inductor_metrics``."""
    index = json.loads((FIXTURES / "runs" / "INDEX.json").read_text())
    return [name for name in index if name.startswith("gpu-")]


@pytest.mark.parametrize("run", with_estimates())
def test_every_triton_kernel_moves_what_inductor_says(tables_of, run):
    """One scheduler node is one kernel: the code's calls and the log's nodes go side by side.

    Of a fused node Inductor counts every tensor whole, where we count what is read of it.
    """
    if tables_of(run)["inductor_metrics"].is_empty():
        pytest.skip("recorded without inductor_metrics")
    for name, ours, whole, theirs in compared(tables_of(run)):
        assert theirs == pytest.approx(max(ours, whole), rel=CLOSE, abs=4), name


def test_a_training_step_has_many_kernels_to_compare(tables_of):
    assert len(list(compared(tables_of("gpu-transformer_training")))) > 100


def compared(tables):
    """Kernel, its bytes, those of all its tensors, Inductor's: all graphs of a run."""
    metrics, code = tables["inductor_metrics"], GeneratedCode(tables)
    graphs = tables["graphs"].filter(pl.col("kind") == "output_code")
    for (key,), estimates in metrics.group_by("compile_key", maintain_order=True):
        mine = graphs.filter(pl.col("compile_key") == key).to_dicts()
        assert len(mine) == estimates.height
        for graph, row in zip(mine, estimates.to_dicts(), strict=True):
            yield from compare(code, graph, row)


def compare(code, graph, row):
    """The same for one graph; no templates, nothing scattered."""
    place = graph["graph_key"] or graph["compile_id"]
    functions = code.functions(graph["pass"], place)
    sites = [site for function in functions for site in function.sites if not site.library]
    kinds = zip(row["node_kinds"], row["node_bytes"], strict=True)
    nodes = [found for found in kinds if not found[0].startswith(("Nop", "Extern"))]
    assert len(sites) == len(nodes)
    for site, (kind, moved) in zip(sites, nodes, strict=True):
        source = code.source(graph["pass"], site.kernel, place)
        scattered = any(p.written and p.written.indexed for p in source.pointers)
        ours = site_work(site, source)
        if not source.template and not scattered and ours is not None:
            fused = kind != "SchedulerNode"
            yield site.kernel, ours.bytes, whole(site, source) if fused else ours.bytes, moved


def whole(site, source):
    tensors = site_tensors(site.arguments)
    return sum(
        tensors[pointer.position].numel * size_of(pointer.dtype)
        for pointer in source.pointers
        for access in (pointer.read, pointer.written)
        if access
    )
