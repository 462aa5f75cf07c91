"""What tells the compiles of two ranks apart, and what must not."""

import pytest
from job_rows import CODE, compiled, job, key

from traceview.derive.job import job_tables
from traceview.derive.job.divergence import Digests, compile_digests
from traceview.torchtext.fx import collectives

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8, 4][4, 1]cuda:{rank}"):
        l_x_ = L_x_
         # File: {root}/net.py:9 in forward, code: return x + 1
        add: "f32[8, 4][4, 1]cuda:{rank}" = l_x_ + {add};  l_x_ = None
        return (add,)"""
_CALL = 'f32[{size}][1]cpu" = torch.ops._c10d_functional'
REDUCED = f"""        tensor: "{_CALL.format(size=16)}.all_reduce(scores, 'sum', '0')
        first: "{_CALL.format(size=16)}.wait_tensor(tensor);  tensor = None
        tensor_1: "{_CALL.format(size=4)}.all_reduce(weights, 'sum', '0')"""


def graph(rank, text=GRAPH, id_="0/0", root="/u", add=1):
    said = text.format(rank=rank, root=root, add=add) if text is GRAPH else text
    return {
        "rank": rank, "compile_key": key(rank, id_), "compile_id": id_, "kind": "dynamo_output",
        "text": said,
    }  # fmt: skip


def guard(rank, text, id_="0/0"):
    return {"rank": rank, "compile_key": key(rank, id_), "compile_id": id_, "guard": text}


def digests(**rows):
    return compile_digests(job(**rows)).sort("rank").to_dicts()


def test_devices_addresses_and_places_do_not_matter():
    one, other = digests(
        graphs=[graph(0), graph(1, root="/home/b")],
        guards=[
            guard(0, "check_obj_id(L['f'], 140144363024384), device=0 0x7f3a"),
            guard(1, "check_obj_id(L['f'], 940144363024384), device=1 0x99aa"),
        ],
    )
    assert one["graph"] == other["graph"]
    assert one["guards"] == other["guards"]


def test_an_operation_matters():
    one, other = digests(graphs=[graph(0), graph(1, add=2)])
    assert one["graph"] != other["graph"]


def test_guards_are_a_set():
    one, other = digests(guards=[guard(0, "a"), guard(0, "b"), guard(1, "b"), guard(1, "a")])
    assert one["guards"] == other["guards"]


def test_where_a_log_is_cut_into_pieces_does_not_matter():
    tables = job(graphs=[graph(0), graph(0, add=5)], guards=[guard(0, "a"), guard(0, "b")])
    pieces = Digests()
    for name in ("guards", "graphs"):
        for n in range(2):
            pieces.see(name, tables[name][n : n + 1])
    pieces.see("compiles", tables["compiles"])
    assert pieces.frame().drop("pid").equals(compile_digests(tables).drop("pid"))


def test_collectives_are_read_in_the_order_of_the_graph():
    assert collectives(REDUCED) == [
        "all_reduce(scores, 'sum', '0') f32[16][1]cpu",
        "all_reduce(weights, 'sum', '0') f32[4][1]cpu",
    ]


def divergence(compiles, **rows):
    tables = job(compiles=compiles, **rows)
    tables.put("compile_digests", compile_digests(tables))
    return job_tables(tables)["job_divergence"].to_dicts()


BOTH = [compiled(0, 0, 5), compiled(1, 0, 5), compiled(2, 0, 5)]


def test_ranks_that_do_the_same_do_not_diverge():
    assert divergence(BOTH, graphs=[graph(rank) for rank in range(3)]) == []


def test_another_graph_on_one_rank():
    usual, odd = divergence(BOTH, graphs=[graph(0), graph(1), graph(2, add=2)])
    assert (usual["kind"], usual["ranks"], odd["ranks"]) == ("graph", "0-1", "2")
    assert odd["compile_key"] == key(2)
    assert {name: odd[name] for name in CODE} == CODE


def test_other_guards_count_only_under_the_same_graph():
    guards = [guard(0, "a"), guard(1, "b"), guard(2, "a")]
    same = [graph(rank) for rank in range(3)]
    assert [row["kind"] for row in divergence(BOTH, graphs=same, guards=guards)] == ["guards"] * 2
    other = [graph(0), graph(1, add=2), graph(2)]
    assert {row["kind"] for row in divergence(BOTH, graphs=other, guards=guards)} == {"graph"}


def test_collectives_in_another_order_come_before_the_graph():
    lines = REDUCED.splitlines()
    swapped = "\n".join((lines[2], lines[0]))
    rows = divergence(BOTH, graphs=[graph(0, REDUCED), graph(1, REDUCED), graph(2, swapped)])
    assert [(row["kind"], row["ranks"]) for row in rows] == [
        ("collectives", "0-1"),
        ("collectives", "2"),
    ]


def test_inductors_schedule_of_collectives_counts_too():
    def schedule(rank, *names):
        return {"rank": rank, "compile_key": key(rank), "schedule": list(names)}

    rows = divergence(
        BOTH,
        collective_schedules=[schedule(0, "a", "b"), schedule(1, "b", "a"), schedule(2, "a", "b")],
    )
    assert [row["ranks"] for row in rows] == ["0,2", "1"]


def test_a_function_that_some_ranks_never_compile():
    extra = compiled(2, 6, 1, "1/0", co_name="evaluate", co_firstlineno=40)
    usual, odd = divergence([*BOTH, extra])
    assert (usual["kind"], usual["ranks"], usual["digest"]) == ("frames", "0-1", "0")
    assert (odd["ranks"], odd["digest"]) == ("2", "1")


@pytest.mark.parametrize("ranks", [1, 512])
def test_it_scales_from_one_rank_to_many(ranks):
    compiles = [compiled(rank, 0, 5) for rank in range(ranks)]
    graphs = [graph(rank, add=2 if rank == 17 else 1) for rank in range(ranks)]
    rows = divergence(compiles, graphs=graphs)
    assert [row["ranks"] for row in rows] == ([] if ranks == 1 else ["0-16,18-511", "17"])


def test_ranks_whose_texts_were_not_kept_are_left_out():
    tables = job(compiles=BOTH, graphs=[graph(0), graph(1), {**graph(2), "text": None}])
    assert job_tables(tables)["job_divergence"].is_empty()
