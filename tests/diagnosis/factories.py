"""A small measured run, as tables and as a folder: one region, one recompile, one graph break."""

from facts import with_facts

from traceview.rules.finding import Cost, Evidence, Finding, Location
from traceview.run import Ending, Manifest, PassRecord, Run
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "pid": 1}
SCRIPT = "".join(f"line_{n} = {n}\n" for n in range(1, 21))


def make_run(folder, **options):
    manifest = Manifest(
        traceview="0.1",
        created_us=1.7e15,
        target=["train.py", "--big"],
        passes=[PassRecord("cold", "raw/cold", ending=Ending("stopped", 0))],
        notes=["one rank only"],
        **options,
    )
    run = Run.create(folder / "run", manifest)
    (run.folder / "raw" / "sources" / "train.py").write_text(SCRIPT)
    return run


def speedup(**more):
    return (
        HEAD
        | {
            "basis": "paired_blocks",
            "clock": "device",
            "eager_ms": 0.345,
            "compiled_ms": 0.050,
            "speedup": 6.9,
            "speedup_low": 6.7,
            "speedup_high": 7.0,
            "pairs_used": 12,
            "pairs_measured": 13,
            "steps_timed": 2400,
            "compiles_inside": 0,
            "outcome": "helped",
            "compile_s": 4.0,
            "break_even_steps": 13560,
            "first_call_ms": 3900.0,
        }
        | more
    )


def compiled(key, **more):
    return (
        HEAD
        | {
            "compile_key": key,
            "compile_id": key,
            "is_forward": True,
            "co_name": "forward",
            "co_filename": "/home/me/train.py",
            "co_firstlineno": 5,
            "outcome": "ok",
            "started_us": 1.7e15 + 2e6,
            "duration_us": 3e6,
            "dynamo_us": 3e6,
            "aot_us": 2e6,
            "inductor_us": 1e6,
            "codegen_us": 5e5,
            "graph_op_count": 35,
            "guard_count": 9,
        }
        | more
    )


def recompile(**more):
    return (
        HEAD_NO_PID
        | {
            "compile_key": "0/1",
            "compile_id": "0/1",
            "co_name": "forward",
            "co_filename": "/home/me/train.py",
            "co_firstlineno": 5,
            "order": 0,
            "failed_compile_id": "0/0",
            "guard": "x.size(0) == 4",
            "kind": "size",
            "source_name": "x",
            "old": "4",
            "new": "5",
            "origin": "structured",
        }
        | more
    )


HEAD_NO_PID = {"pass": "cold"}


def graph_break(**more):
    return (
        HEAD_NO_PID
        | {
            "compile_key": "0/0",
            "compile_id": "0/0",
            "gb_id": "GB0124",
            "gb_type": "Unsupported Tensor.item() call",
            "reason": "Unsupported Tensor.item() call\n  Explanation: …",
            "explanation": "item() was called",
            "hints": ["set capture_scalar_outputs"],
            "user_file": "/home/me/train.py",
            "user_line": 9,
            "user_function": "forward",
            "origin": "structured",
        }
        | more
    )


def account(stance, category, ms, kind="busy"):
    return HEAD_NO_PID | {
        "stance": stance, "category": category, "kind": kind, "ms": ms, "clock": "device",
    }  # fmt: skip


def kernel(stance, name, ms, **more):
    return HEAD_NO_PID | {
        "stance": stance, "name": name, "category": "elementwise", "count": 1.0, "ms": ms,
        "share": 0.5, "clock": "device",
    } | more  # fmt: skip


def rows():
    """Every table's rows; change one and hand them to ``tables_of``."""
    return {
        "runs": [
            HEAD | {"started_us": 1.7e15, "exit_kind": "stopped", "exit_code": 0,
                    "torch_version": "2.11.0", "device_name": "NVIDIA H200", "steps_seen": 5000,
                    "argv": '["train.py", "--big"]'}
        ],
        "environment": [
            HEAD_NO_PID | {"section": "env", "name": "TORCH_LOGS", "value": "recompiles"},
            HEAD_NO_PID | {"section": "dynamo_config", "name": "recompile_limit", "value": "16",
                    "default": "8", "set_by": "user"},
        ],
        "regions": [
            HEAD | {"region_id": 0, "kind": "module", "name": "Net", "calls": 5000,
                    "call_file": "/home/me/train.py", "call_line": 12, "mode": "reduce-overhead",
                    "target_file": "/home/me/train.py", "target_line": 5}
        ],
        "region_costs": [
            HEAD | {"region_id": 0, "share": 0.8, "calls_per_step": 1.0, "eager_ms": 0.3,
                    "compiled_ms": 0.04, "compile_s": 6.0, "compiles": 2}
        ],
        "speedups": [speedup()],
        "block_pairs": [
            HEAD | {"pair_index": 0, "eager_ms": 0.345, "compiled_ms": 0.05, "speedup": 6.9,
                    "steps": 100, "clock": "device", "used": True},
            HEAD | {"pair_index": 1, "eager_ms": 0.9, "compiled_ms": 0.05, "speedup": 18.0,
                    "steps": 100, "clock": "device", "used": False, "left_out": "other work"},
        ],
        "compiles": [compiled("0/0"), compiled("0/1", started_us=1.7e15 + 9e6)],
        "compile_costs": [
            HEAD_NO_PID | {"co_name": "forward", "co_filename": "/home/me/train.py",
                           "co_firstlineno": 5, "compiles": 2, "total_s": 6.0, "dynamo_s": 2.0,
                           "aot_s": 2.0, "inductor_s": 1.0, "codegen_s": 1.0}
        ],
        "recompiles": [recompile(), recompile(origin="text"), recompile(order=1, guard="y")],
        "graph_breaks": [graph_break(), graph_break(origin="text", hints=None)],
        "accounting": [
            account("eager", "elementwise", 0.2),
            account("eager", "idle_launch_bound", 0.145, "idle"),
            account("compiled", "generated_pointwise", 0.05),
        ],
        "step_counts": [
            HEAD_NO_PID | {"stance": "eager", "kernels": 35.0, "launches": 35.0, "step_ms": 0.5},
            HEAD_NO_PID | {"stance": "compiled", "kernels": 1.0, "step_ms": 0.05},
        ],
        "memory": [
            HEAD | {"stance": "eager", "source": "allocator", "block_index": 0, "peak_bytes": 900},
            HEAD | {"stance": "eager", "source": "process", "block_index": 0, "peak_bytes": 9999},
        ],
        "kernel_groups": [
            kernel("eager", "vectorized_elementwise_kernel", 0.12, cpu_op="aten::add"),
            kernel("eager", "gelu_kernel", 0.08, cpu_op="aten::gelu"),
            kernel("compiled", "triton_poi_fused_add_gelu_0", 0.05),
        ],
        "generated_kernels": [
            HEAD_NO_PID | {"compile_key": "0/0", "compile_id": "0/0", "aot_id": "0_inference",
                           "kernel_name": "triton_poi_fused_add_gelu_0", "category": "pointwise",
                           "source_code": "@triton.jit", "fused_ops": ["aten.add", "aten.gelu"],
                           "user_lines": ["/home/me/train.py:7"]}
        ],
        "graphs": [
            HEAD_NO_PID | {"compile_key": "0/0", "compile_id": "0/0", "kind": "dynamo_output",
                           "text": "def forward(x): ...", "node_count": 35},
            HEAD_NO_PID | {"compile_key": "0/0", "compile_id": "0/0", "kind": "output_code",
                           "aot_id": "0_inference", "text": "def call(args): ..."},
        ],
        "log_records": [
            HEAD | {"key": "artifact", "known": True, "records": 90},
            HEAD | {"key": "novel", "known": False, "records": 3},
        ],
        "unreadable": [HEAD_NO_PID | {"file": "raw/cold/x.log", "kind": "truncated", "times": 2}],
        "sources": [HEAD_NO_PID | {"file": "/home/me/train.py", "copy": "raw/sources/train.py"}],
        "notes": [HEAD | {"what": "profiler window", "why": "CUPTI is not there"}],
        "settings": [{"name": "assumed_steps", "value": 2000.0}],
    }  # fmt: skip


REPLACED = {
    "pass": "cold", "group_id": 0, "stance": "compiled", "name": "triton_poi_fused_add_gelu_0",
    "category": "generated_pointwise", "compile_id": "0/0", "graph_key": "f1", "count": 1.0,
    "ms": 0.05, "clock": "device", "ops": ["aten.add", "aten.gelu"], "how": "provenance",
    "file": "/home/me/train.py", "line": 7,
}  # fmt: skip


def matched(*compiled_kernels, **more):
    """Tables of one group: ``compiled_kernels`` stand for two eager ones."""
    eager = [
        REPLACED | {"stance": "eager", "name": name, "cpu_op": op, "ms": ms, "compile_id": None,
                    "category": "elementwise", "graph_key": None, "how": "line", "ops": [op]}
        for name, op, ms in (("add_kernel", "aten.add", 0.12), ("gelu_kernel", "aten.gelu", 0.08))
    ]  # fmt: skip
    group = {
        "pass": "cold", "group_id": 0, "kind": "fused", "matched": True, "eager_kernels": 2.0,
        "eager_ms": 0.2, "compiled_kernels": float(len(compiled_kernels)), "how": "provenance",
        "compiled_ms": sum(row["ms"] for row in compiled_kernels), "clock": "device",
        "ops": ["aten.add", "aten.gelu"], "lines": ["/home/me/train.py:7"], "compile_ids": ["0/0"],
    }  # fmt: skip
    return {"matched_kernels": [*eager, *compiled_kernels], "match_groups": [group | more]}


def tables_of(**changed):
    """The tables of ``rows()`` with some replaced; None leaves a table unrecorded."""
    found = {name: made for name, made in (rows() | changed).items() if made is not None}
    return with_facts(Tables({name: from_rows(name, made) for name, made in found.items()}))


def finding(rule="gb-item", severity="warning", ms=None, seconds=None, line=9, title="a cause"):
    return Finding(
        code="TV101",
        rule=rule,
        severity=severity,
        title=title,
        explanation="because",
        cost=Cost(ms, seconds, "host time"),
        confidence="measured",
        location=Location("/home/me/train.py", line, "forward"),
        evidence=(Evidence("seen 3 times", "graph_breaks", "raw/cold/x.log", 7),),
        what_to_do="do it otherwise",
    )
