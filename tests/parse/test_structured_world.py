"""Section ``world`` of table configs: the ranks that the job has, from what torch 2.13 writes.

The texts are those of a run of three ranks (gloo), and of one whose collectives were of a group of
two of them; what needs CUDA is as torch/_inductor/fx_passes writes it.
"""

import pytest
from structured_log_tools import artifact, at, read

GATHER = (
    "    g = torch.ops._c10d_functional.all_gather_into_tensor.default(sin, {}, '{}');  sin = None"
)
SCATTER = "    r = torch.ops._c10d_functional.reduce_scatter_tensor.default(cos, 'sum', {}, '{}')"
REDUCE = "    r = torch.ops._c10d_functional.all_reduce.default(mul, 'sum', '0')"
SCRIPT = """if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    from torch._dynamo.repro.after_aot import setup_fake_process_groups
    setup_fake_process_groups({})
    with torch.no_grad():"""


def told(tmp_path, *records):
    tables, damage = read(tmp_path, b"".join(records))
    assert damage.total == 0
    return tables["configs"].select("section", "settings").rows()


def graph(text, name="inductor_post_grad_graph"):
    return artifact(name, f"def forward(self):\n{text}\n    return (r,)", **at(0))


def script(groups):
    return artifact("fx_graph_runnable", SCRIPT.format(groups), **at(0))


@pytest.mark.parametrize(
    "record",
    [
        graph(GATHER.format(3, 0)),
        graph(SCATTER.format(3, 0)),
        script({"0": {"size": 3, "rank": 1}}),
        script({"1": {"size": 2, "rank": 1}, "0": {"size": 3, "rank": 1}}),
        artifact("fx_collectives_analytical_estimation", "# World size: 3\nCollective Key,NCCL"),
        artifact(
            "inductor_spmd_graph_mismatch",
            f"{'=' * 80}\nSPMD GRAPH MISMATCH — rank 1, world_size=3\n{'=' * 80}",
        ),
    ],
)
def test_the_default_group_tells_the_ranks(tmp_path, record):
    assert told(tmp_path, record, record) == [("world", '{"world_size": 3}')]


@pytest.mark.parametrize(
    "record",
    [
        graph(GATHER.format(2, 1)),  # a part of the job
        graph(REDUCE),
        graph("    # " + GATHER.format(3, 0).replace(".default(", "(")),
        script({"1": {"size": 2, "rank": 0}}),
        artifact("fx_graph_runnable", "x = {'0': {'size': 3, 'rank': 1}}", **at(0)),
        artifact("fx_collectives_analytical_estimation", "# World size: 1\nCollective Key,NCCL"),
        artifact("fx_collectives_analytical_estimation", "Key\n# World size: 9"),
    ],
)
def test_what_is_not_the_default_group_tells_nothing(tmp_path, record):
    assert told(tmp_path, record) == []
