"""A recompile has one cause, whoever reports it: findings, chains and late compiles of a job."""

from factories import compiled as compiled_here
from factories import recompile, tables_of
from job_rows import ZERO, S, compiled, job, key

from traceview.derive.job import job_tables
from traceview.diagnosis.compiler import recompile_chains
from traceview.diagnosis.focus import Focus
from traceview.diagnosis.job.build import job_story
from traceview.rules import rc_global_state, rc_python_constant

STATE = {"guard": "GLOBAL_STATE changed: grad_mode", "kind": "global_state",
         "source_name": "grad_mode", "old": None, "new": None}  # fmt: skip


def value(number):
    return {"guard": f"k == {number}", "kind": "value", "source_name": "k", "old": str(number),
            "new": str(number + 1)}  # fmt: skip


def guards(make, **head):
    """Three recompiles: state is checked first, and a variant for this state has another k."""
    return [
        make(n) | head | row | {"order": order, "failed_compile_id": f"0/{n - 1 - order}"}
        for n in range(1, 4)
        for order, row in enumerate((STATE, value(n)))
    ]


def test_a_value_after_a_state_is_the_cause_in_findings_and_in_the_chain():
    def made(n):
        return recompile(compile_key=f"0/{n}", compile_id=f"0/{n}")

    tables = tables_of(
        compiles=[compiled_here(f"0/{n}") for n in range(4)], recompiles=guards(made)
    )
    (finding,) = rc_python_constant.check(tables)
    assert finding.evidence[0].text.endswith("k == 1")
    assert list(rc_global_state.check(tables)) == []
    (chain,) = recompile_chains(tables, Focus.of(tables))
    assert [(link.kind, link.source_name) for link in chain.links] == [("value", "k")] * 3


def test_a_value_after_a_state_is_the_cause_in_a_job_too():
    def made(n):
        return {"rank": 0, "compile_key": key(0, f"0/{n}"), "compile_id": f"0/{n}",
                "co_name": "forward", "co_filename": "/u/net.py", "co_firstlineno": 7,
                "origin": "structured"}  # fmt: skip

    steps = [
        {"rank": 0, "pid": 1, "step": step, "started_us": ZERO + step * 10 * S} for step in range(9)
    ]
    compiles = [compiled(0, 10 * n + 55, 1, f"0/{n}") for n in range(4)]
    tables = job(compiles=compiles, recompiles=guards(made), steps=steps)
    for name, frame in job_tables(tables).items():
        tables.put(name, frame)
    (chain,) = job_story(tables, "logs").recompiles
    assert [link.source_name for link in chain.links] == ["k"] * 3
    late = tables["late_compiles"].drop_nulls("reason")
    assert late["reason"].to_list() == ["k == 1", "k == 2", "k == 3"]
