"""Edges of the rules about cudagraphs and single kernels, on hand-made rows."""

import json

import polars as pl
import pytest

from traceview.rules import (
    ap_call_overhead,
    cg_copied_input,
    cg_dynamic_rerecord,
    cg_moved_input,
    cg_skip_cpu,
    ind_causal_mask,
    ind_misaligned_copy,
    ind_missed_epilogue,
    ind_slow_kernel,
    ind_slower_library,
)

FILE = "/u/model.py"
KEY = "cold:1:0:0/0"
STEP = {"speedup": 2.0, "eager_ms": 2.0, "compiled_ms": 1.0, "outcome": "helped"}
COUNTS = {"stance": "compiled", "step_ms": 2.0, "device_busy_ms": 0.3, "steps": 1}
COPY = {"kind": "copy", "value": 4000.0, "unit": "GB/s"}
FP32 = {
    "kind": "matmul", "dtype": "float32", "value": 50.0, "unit": "TFLOP/s",
    "detail": "tf32 off, right factor transposed",
}  # fmt: skip


def compile_row(**columns):
    stack = [
        {"file": FILE, "line": 40, "function": "main"},
        {"file": FILE, "line": 9, "function": "forward"},
    ]
    code = {"co_name": "forward", "co_filename": FILE, "co_firstlineno": 9}
    row = {"compile_key": KEY, "compile_id": "0/0", "stack": json.dumps(stack), **code}
    return {**row, **columns}


def found(module, tables, **settings):
    return list(module.check(tables, **settings))


class TestCopiedInput:
    GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_table_: "f32[4000, 256][256, 1]cuda:0", L_q_: "f32[8][1]cuda:0", \
L_self_parameters_w_: "f32[4000, 256][256, 1]cuda:0"):
        l_table_ = L_table_
        y: "f32[8][1]cuda:0" = l_table_ + L_q_;  l_table_ = None
        return (y,)
"""

    def tables(self, make, ms=0.5, *, replayed=True, parent=2, dims="[4000, 256], [8]"):
        """Two steps with a call each that copies its inputs; ``parent`` launches the copy."""
        at = {"stance": "compiled", "compile_id": "0/0"}
        ops, kernels = [], []
        for step, first in enumerate((0, 10)):
            calls = [(2, None, "aten::_foreach_copy_"), (3, 2, "aten::copy_")]
            ops += [
                {**at, "step": step, "op_id": first + op, "name": name,
                 "parent_id": None if above is None else first + above,
                 "input_dims": f"[[{dims}], [{dims}], []]"}
                for op, above, name in calls
            ]  # fmt: skip
            kernel = {**at, "step": step, "in_cudagraph": False}
            copied = {"cpu_op_id": first + parent, "duration_ns": int(ms * 1e6)}
            kernels += [
                {**kernel, **copied},
                {**kernel, "cpu_op_id": first + 9, "duration_ns": 900_000},
                {**kernel, "in_cudagraph": replayed, "duration_ns": 300_000},
            ]
        sources = ("L['table']", "L['q']")
        return make(
            speedups=[{**STEP, "outcome": "hurt", "eager_ms": 0.5}],
            cpu_ops=ops,
            kernels=kernels,
            compiles=[compile_row()],
            guards=[{"compile_key": KEY, "source_name": source} for source in sources],
            graphs=[{"kind": "dynamo_output", "compile_key": KEY, "compile_id": "0/0",
                     "text": self.GRAPH}],
        )  # fmt: skip

    @pytest.mark.parametrize("parent", [2, 3])
    def test_what_is_copied_is_named_by_its_size(self, make, parent):
        (one,) = found(cg_copied_input, self.tables(make, parent=parent))
        assert one.title == (
            "table is copied into a cudagraph's own memory in every call: 50 % of the step"
        )
        assert one.cost.ms_per_step == pytest.approx(0.5)
        assert [evidence.text for evidence in one.evidence] == [
            "aten::_foreach_copy_ before the cudagraph runs: 1 per step, 0.500 ms on the device, "
            "3.91 MiB copied by each",
            "input table, float32 [4000, 256]: 3.91 MiB",
        ]
        assert (one.severity, one.location.line) == ("warning", 9)
        assert [at.line for at in one.also_at] == [40]

    def test_an_input_of_no_known_size_has_no_name(self, make):
        for dims in ("[7]", ""):
            (one,) = found(cg_copied_input, self.tables(make, dims=dims))
            assert one.title.startswith("An input is copied")
            assert len(one.evidence) == 1

    @pytest.mark.parametrize("rows", [{"ms": 0.04}, {"replayed": False}, {"parent": 8}])
    def test_small_copies_and_others_are_passed_over(self, make, rows):
        assert found(cg_copied_input, self.tables(make, **rows)) == []


class TestSkipCpu:
    @staticmethod
    def event(reason, line=12, event="partition", **columns):
        place = {"user_file": FILE, "user_line": line, "user_function": "forward"} if line else {}
        return {"compile_key": KEY, "event": event, "reason": reason, **place, **columns}

    def idle(self, *, in_graph=True):
        account = {"stance": "compiled", "clock": "device"}
        return {
            "speedups": [STEP],
            "step_counts": [COUNTS],
            "accounting": [{**account, "category": "idle_launch_bound", "kind": "idle", "ms": 0.2}],
            "account_details": [
                {**account, "category": "idle_sync", "in_graph": in_graph, "ms": 0.1},
            ],
        }

    def test_a_split_is_counted_with_its_commonest_line(self, make):
        reason = "reason=DeviceCopy ops, ir=DeviceCopy, fx=prims.device_put.default(arg1_1, cuda:0)"
        created = "Created 3 graph partitions: 2 cudagraphable, 1 non-cudagraphable"
        tables = make(
            compiles=[compile_row()],
            cudagraph_events=[
                self.event(created, None, count=3),
                self.event(f"op0: {reason}"),
                self.event(f"op1: {reason}", 15),
                self.event(f"op2: {reason}", 15),
            ],
            **self.idle(),
        )
        (one,) = found(cg_skip_cpu, tables)
        assert (one.location.line, [place.line for place in one.also_at]) == (15, [12])
        assert "into 3 parts" in one.explanation
        assert "for 1 of them, because of 3 operations" in one.explanation
        assert one.cost.ms_per_step == pytest.approx(0.3)
        assert one.severity == "warning"
        assert one.about == {f"{FILE}:9"}

    def test_waits_outside_of_graphs_are_not_its_cost(self, make):
        skip = self.event("skipping cudagraphs due to cpu device (arg0_1)", event="skip")
        idle = self.idle(in_graph=False)
        tables = make(compiles=[compile_row()], cudagraph_events=[skip], **idle)
        assert found(cg_skip_cpu, tables)[0].cost.ms_per_step == pytest.approx(0.2)

    @pytest.mark.parametrize(
        ("reason", "said"),
        [
            ("skipping cudagraphs due to multiple devices: device('cuda', 0)", "one device"),
            ("disabling cudagraphs due to incompatible op aten.foo.default", "an operator"),
            ("op1: reason=CUDAGraph-unsafe custom ops, ir=FallbackKernel", "an operator"),
            ("op1: reason=cpu ops, ir=ComputedBuffer, fx=aten.mul", "work on the CPU"),
            ("op1: reason=unbacked binding ops, ir=FallbackKernel", "depends on data"),
            ("op1: reason=Conditional ops, ir=Conditional", "torch.cond"),
        ],
    )
    def test_each_reason_has_its_words(self, make, reason, said):
        event = "partition" if reason.startswith("op") else "skip"
        tables = make(compiles=[compile_row()], cudagraph_events=[self.event(reason, event=event)])
        (one,) = found(cg_skip_cpu, tables)
        assert said in one.title
        assert one.cost.ms_per_step is None

    @pytest.mark.parametrize(
        "reason",
        [
            "op0: reason=partition includes all ops when cudagraphs is disabled, ir=DeviceCopy",
            "op0: reason=dynamic shape ops, ir=ComputedBuffer, fx=aten.cpu_like",
            "op0: reason=custom partition op: mylib::cpu, ir=FallbackKernel",
            "Created 1 graph partitions: 1 cudagraphable, 0 non-cudagraphable",
            "skipping cudagraphs due to mutated inputs (1 instances)",
        ],
    )
    def test_other_reasons_are_not_its_business(self, make, reason):
        event = "skip" if reason.startswith("skipping") else "partition"
        tables = make(compiles=[compile_row()], cudagraph_events=[self.event(reason, event=event)])
        assert found(cg_skip_cpu, tables) == []

    def test_metrics_alone_name_the_function(self, make):
        row = compile_row(cudagraph_skip_reason="skipping cudagraphs due to cpu device (arg0_1)")
        (one,) = found(cg_skip_cpu, make(compiles=[row]))
        assert (one.location.line, one.evidence[0].table) == (9, "compiles")

    def test_only_the_first_rank_counts(self, make):
        skip = self.event("skipping cudagraphs due to cpu device (arg0_1)", event="skip")
        tables = make(
            compiles=[compile_row(rank=0), compile_row(rank=1, compile_key="cold:2:0:0/0")],
            cudagraph_events=[
                {**skip, "rank": 0},
                {**skip, "rank": 1, "compile_key": "cold:2:0:0/0"},
            ],
        )
        assert len(found(cg_skip_cpu, tables)) == 1


class TestDynamicRerecord:
    @staticmethod
    def events(sizes, prefix="[0/0] "):
        for size in sizes:
            yield {"event": "tree", "reason": f"Recording cudagraph tree for symint key {size}"}
            yield {"event": "warmup", "reason": f"{prefix}Running warmup function=partition_0"}

    @staticmethod
    def block(steps, duration, inside):
        return {
            "stance": "compiled", "first_step": 10, "steps": steps, "duration_ms": duration,
            "compiles_inside": inside,
        }  # fmt: skip

    def tables(self, make, sizes, spans=(), **more):
        events = list(self.events(sizes))
        intervals = [
            {"trigger": trigger, "duration_ms": 2.0, "step": step} for trigger, step in spans
        ]
        return make(
            compiles=[compile_row()],
            cudagraph_events=events,
            compile_intervals=intervals,
            speedups=[STEP],
            **more,
        )

    def test_sizes_of_forward_and_backward_count_once(self, make):
        forward = [f"({n}, 8)" for n in range(16, 21)]
        backward = [f"(8, {n})" for n in range(16, 21)]
        other = [f"({n}, {n + 1}, {n + 2})" for n in range(16, 21)]
        assert found(cg_dynamic_rerecord, self.tables(make, forward + backward + other)) == []

    def test_the_least_number_is_a_setting(self, make):
        tables = self.tables(make, [f"({n}, 8)" for n in range(16, 21)])
        (one,) = found(cg_dynamic_rerecord, tables, least_sizes=5)
        assert one.title.startswith("5 cudagraphs of forward")
        assert (one.location.line, one.severity, one.cost.seconds) == (40, "info", None)

    @pytest.mark.parametrize(
        ("sources", "meant"),
        [
            (["L['t']"], "one for each value of t"),
            (["L['t']", "L['x'].size()[0]"], "one for each size of its inputs"),
        ],
    )
    def test_a_number_is_no_size(self, make, sources, meant):
        symbols = [
            {"compile_id": "0/0", "event": "create", "source_name": source} for source in sources
        ]
        tables = self.tables(make, [f"({n},)" for n in range(40)], symbols=symbols)
        (one,) = found(cg_dynamic_rerecord, tables)
        assert one.title.endswith(meant)
        assert ("Pass t in tensors" in one.what_to_do) == (len(sources) == 1)

    def test_the_cost_is_what_blocks_with_recordings_take_longer(self, make):
        spans = [("dynamo", 0), *(("cudagraph_recording", step) for step in range(10, 50))]
        tables = self.tables(
            make,
            [f"({n}, 8)" for n in range(40)],
            spans,
            blocks=[self.block(50, 250.0, 40), self.block(100, 100.0, 0)],
        )
        (one,) = found(cg_dynamic_rerecord, tables)
        assert one.cost.seconds == pytest.approx(0.2)
        assert "5.00 ms per recording" in one.cost.about
        assert one.severity == "warning"

    def test_other_compiles_in_the_blocks_leave_the_recordings_alone(self, make):
        spans = [("dynamo", 20), *(("cudagraph_recording", step) for step in range(10, 50))]
        tables = self.tables(
            make, [f"({n},)" for n in range(40)], spans, blocks=[self.block(50, 250.0, 40)]
        )
        assert found(cg_dynamic_rerecord, tables)[0].cost.seconds == pytest.approx(0.08)

    @pytest.mark.parametrize(("steps", "each"), [(50, 6.5), (100, None)])
    def test_where_most_steps_meet_a_new_size_each_step_pays(self, make, steps, each):
        tables = make(
            compiles=[compile_row()],
            cudagraph_events=[*self.events([f"({n},)" for n in range(40)])],
            compile_intervals=[],
            speedups=[{**STEP, "eager_ms": 2.5, "compiled_ms": 9.0, "outcome": "hurt"}],
            blocks=[self.block(steps, 9.0 * steps, 0)],
        )
        (one,) = found(cg_dynamic_rerecord, tables)
        assert one.cost.ms_per_step == each
        assert one.severity == ("warning" if each else "info")

    @pytest.mark.parametrize(("replays", "each"), [(3, 5.0), (2, None)])
    def test_a_step_that_records_is_compared_with_its_call_replayed(self, make, replays, each):
        events = [*self.events([f"({n},)" for n in range(10)])]
        events += [{"event": "record", "reason": "[0/0] Recording function=partition_0"}] * 60
        own = self.block(100, 600.0, 50)
        again = {**self.block(20, 20.0, 0), "replayed": True}
        tables = make(
            cudagraph_events=events,
            compile_intervals=[
                {"trigger": "cudagraph_recording", "duration_ms": 2.0, "step": 2 * step}
                for step in range(60)
            ],
            speedups=[{**STEP, "eager_ms": 6.5, "compiled_ms": 6.0}],
            blocks=[own, *[again] * replays],
        )
        (one,) = found(cg_dynamic_rerecord, tables)
        assert one.title.startswith("60 cudagraphs")
        assert one.cost.ms_per_step == each
        if each:
            assert one.severity == "warning"

    def recording(self, size, address=0):
        text = f"inputs: [0]: Tensor(size=[{size}, 5], data_ptr=0x{address})"
        return {"event": "record", "reason": f"[0/0] Recording function=partition_0, {text}"}

    @pytest.mark.parametrize(
        ("graphs", "later", "sizes"),
        [(1, range(40), 40), (2, range(40), 20), (1, [1] * 40, None)],
        ids=["forward", "forward and backward", "one size again and again"],
    )
    def test_sizes_that_come_while_blocks_run_are_counted_by_their_recordings(
        self, make, graphs, later, sizes
    ):
        events = list(self.events(["(7, 8)", "(7, 9)"] * graphs))
        events += [self.recording(size, address) for address, size in enumerate(later)]
        hits = found(cg_dynamic_rerecord, make(cudagraph_events=events, compiles=[]))
        assert [one.title.split()[0] for one in hits] == ([str(sizes)] if sizes else [])

    def test_sizes_that_never_come_again_are_counted_by_torchs_warning(self, make):
        warning = {
            "event": "dynamic_shapes", "count": 9,
            "reason": "CUDAGraph supports dynamic shapes by recording a new graph for each size.",
        }  # fmt: skip
        tables = {
            "cudagraph_events": [*self.events(["(7, 8)"]), warning],
            "speedups": [{**STEP, "eager_ms": 2.0, "compiled_ms": 6.0, "outcome": "hurt"}],
        }
        account = {"stance": "compiled", "category": "idle_cudagraph_recording", "kind": "idle"}
        (one,) = found(cg_dynamic_rerecord, make(**tables, accounting=[{**account, "ms": 4.0}]))
        assert one.title.startswith("9 cudagraphs")
        assert (one.severity, one.cost.ms_per_step) == ("warning", pytest.approx(4.0))
        (one,) = found(cg_dynamic_rerecord, make(**tables, accounting=[{**account, "ms": 2.0}]))
        assert (one.severity, one.cost.ms_per_step) == ("info", None)
        events = [*self.events(["(7, 8)"]), *self.events(["(7, 8)"], "[1/0] "), warning]
        assert found(cg_dynamic_rerecord, make(cudagraph_events=events)) == []

    def test_graphs_without_symbolic_sizes_are_not_meant(self, make):
        events = [
            {"event": "tree", "reason": "Recording cudagraph tree for graph without symints"},
            {"event": "record", "reason": "[0/0] Recording function=partition_0"},
        ] * 20
        assert found(cg_dynamic_rerecord, make(cudagraph_events=events, compiles=[])) == []

    def test_a_log_without_compile_ids_has_no_line(self, make):
        events = list(self.events([f"({n},)" for n in range(9)], prefix=""))
        (one,) = found(cg_dynamic_rerecord, make(cudagraph_events=events, compiles=[]))
        assert (one.location, one.about) == (None, frozenset())


class TestMovedInput:
    """Rows cut from a run whose target network gets ``t.data = …`` in each step."""

    USES = (
        f'   File "{FILE}", line 50, in td_loss\n    t1, t2 = target(after)\n'
        f'  File "{FILE}", line 23, in forward\n    return self.one(obs), self.two(obs)\n'
    )
    MOVED = (
        "[0/0] Re-recording function=partition_0, reason=static input data pointer changed.\n"
        "input name: primals_2. data pointer changed from 140686618916352 to 140686619004416. "
        f"input stack trace:{USES}\n"
        "input name: primals_1. data pointer changed from 140686618959360 to 140686619380736. "
        f"input stack trace:{USES}"
    )

    def tables(self, make, reason=MOVED, recordings=range(70, 74), ms=(10.0, 16.0)):
        spans = [
            {
                "trigger": "cudagraph_recording",
                "compile_id": "0/0",
                "step": step,
                "duration_ms": each,
            }
            for step in recordings
            for each in ms
        ]
        speedup = {"speedup": 0.21, "eager_ms": 10.9, "compiled_ms": 49.0, "outcome": "hurt"}
        overhead = {"category": "idle_call_overhead", "kind": "idle", "ms": 16.4}
        region = {"name": "td_loss", "calls": 90, "target_file": FILE, "target_line": 48}
        return make(
            cudagraph_events=[{"event": "rerecord", "reason": reason}] * 9,
            compiles=[compile_row(co_name="td_loss", co_firstlineno=48)],
            compile_intervals=spans,
            blocks=[
                {"stance": "compiled", "first_step": 70, "steps": 4, "duration_ms": 196.0},
                {"stance": "compiled", "first_step": 90, "steps": 99, "replayed": True},
            ],
            speedups=[speedup],
            accounting=[{"stance": "compiled", "clock": "device", **overhead}],
            regions=[{**region, "pid": 1, "region_id": 0}],
        )

    def test_it_stands_where_the_inputs_are_used(self, make):
        (one,) = found(cg_moved_input, self.tables(make))
        assert one.title == "8 cudagraphs of td_loss(): the addresses of 2 inputs change"
        assert (one.location.line, one.severity) == (50, "warning")
        assert one.cost.ms_per_step == pytest.approx(26.0)
        assert one.evidence[1].text == "recordings in 4 of 4 timed steps, 26.0 ms per step"

    def test_without_a_stack_it_stands_at_the_function(self, make):
        text = self.MOVED.replace(self.USES, " None")
        (one,) = found(cg_moved_input, self.tables(make, text))
        assert one.location.line == 48

    def test_entering_the_function_is_its_symptom(self, make):
        (one,) = found(cg_moved_input, self.tables(make))
        (entering,) = found(ap_call_overhead, self.tables(make))
        assert one.rule in ap_call_overhead.FOLLOWS
        assert one.about & entering.about

    @pytest.mark.parametrize(
        "rows",
        [
            {"recordings": range(1, 9)},  # before the timed steps: once for each set of addresses
            {"ms": (1.0, 1.0)},
            {"reason": "[0/0] Re-recording function=partition_0, reason=dead outputs differ"},
        ],
    )
    def test_early_cheap_or_other_recordings_are_passed_over(self, make, rows):
        assert found(cg_moved_input, self.tables(make, **rows)) == []


class TestMisalignedCopy:
    @staticmethod
    def op(op_id, parent, name, graph="g", **columns):
        return {
            "stance": "compiled", "step": 0, "op_id": op_id, "parent_id": parent, "name": name,
            "graph_key": graph, "compile_id": "0/0" if graph else None, "duration_ns": 20_000,
            "input_strides": "[[1], []]", "input_dims": "[[1024], []]", **columns,
        }  # fmt: skip

    def tables(self, make, *ops, code="triton_poi_fused_0", offset="1", **more):
        view = json.dumps(["", "[1024]", "[1]", offset])
        return make(
            cpu_ops=[
                self.op(0, None, "aten::slice", None),
                self.op(1, 0, "aten::as_strided", None, concrete_inputs=view),
                self.op(2, None, "## Call CompiledFxGraph g ##"),
                *ops,
            ],
            kernels=[
                {
                    "stance": "compiled", "step": 0, "name": "Memcpy DtoD", "bytes": 4096,
                    "duration_ns": 50_000, "cpu_op_id": 4,
                },
            ],
            kernel_calls=[{"graph_key": "g", "kernel_name": code, "category": "fallback"}],
            step_counts=[COUNTS],
            speedups=[STEP],
            compiles=[compile_row()],
            **more,
        )  # fmt: skip

    def clone(self, first=3, **columns):
        return (
            self.op(first, 2, "aten::clone", **columns),
            self.op(first + 1, first, "aten::copy_"),
        )

    def test_a_clone_before_the_first_kernel(self, make):
        line = {"name": "aten::slice", "file": FILE, "line": 39, "stance": "compiled"}
        tables = self.tables(
            make, *self.clone(), self.op(6, 2, "triton_poi_fused_0"), line_ops=[line]
        )
        (one,) = found(ind_misaligned_copy, tables)
        assert (one.location.line, one.also_at[0].line) == (39, 40)
        assert one.cost.ms_per_step == pytest.approx(0.05)
        assert "storage offset 1 × 4 bytes" in one.evidence[1].text
        assert "each call" in one.title

    def test_where_the_gpu_waits_the_hosts_time_counts(self, make):
        idle = {
            "stance": "compiled", "clock": "device", "kind": "idle",
            "category": "idle_launch_bound", "ms": 0.5,
        }  # fmt: skip
        slow = self.clone(duration_ns=400_000)
        tables = self.tables(
            make, *slow, self.op(6, 2, "triton_poi_fused_0"), accounting=[idle], offset="4"
        )
        (one,) = found(ind_misaligned_copy, tables)
        assert one.cost.ms_per_step == pytest.approx(0.2)  # at the timed step's pace
        assert one.location.line == 40
        assert [item.table for item in one.evidence] == ["cpu_ops", "kernels"]

    @pytest.mark.parametrize("case", ["after", "deep", "in_code", "outside", "shaped"])
    def test_clones_of_another_making(self, make, case):
        ops = {
            "after": (self.op(3, 2, "triton_poi_fused_0"), *self.clone(4)),
            "deep": (
                self.op(3, 2, "mylib::op"),
                self.op(4, 3, "aten::clone"),
                self.op(6, 2, "triton_poi_fused_0"),
            ),
            "in_code": (*self.clone(), self.op(6, 2, "triton_poi_fused_0")),
            "outside": (self.op(3, None, "aten::clone", None), self.op(6, 2, "triton_poi_fused_0")),
            "shaped": (
                *self.clone(input_strides="[[32, 1], []]"),
                self.op(6, 2, "triton_poi_fused_0"),
            ),
        }[case]
        code = "torch.ops.aten.clone.default" if case == "in_code" else "triton_poi_fused_0"
        assert found(ind_misaligned_copy, self.tables(make, *ops, code=code)) == []

    def test_ranks_do_not_mix(self, make):
        tables = self.tables(make, *self.clone(), self.op(6, 2, "triton_poi_fused_0"))
        for name in ("cpu_ops", "kernels"):
            ranks = [tables[name].with_columns(rank=pl.lit(n, dtype=pl.Int32)) for n in (1, 0)]
            tables.put(name, pl.concat(ranks))
        (one,) = found(ind_misaligned_copy, tables)
        assert one.cost.ms_per_step == pytest.approx(0.05)
        assert "in 1 of 1 calls" in one.evidence[0].text

    def test_a_copy_that_nobody_sees_is_not_said(self, make):
        tables = self.tables(make, *self.clone(), self.op(6, 2, "triton_poi_fused_0"))
        assert found(ind_misaligned_copy, tables, least_share=0.06) == []


class TestMissedEpilogue:
    def tables(self, make, saved=400_000_000, category="pointwise", **columns):
        note = {
            "compile_key": KEY, "kind": "epilogue_not_tried", "text": "gelu after mm stays",
            "kernels": ["triton_poi_fused_gelu_0"], "lines": [f"{FILE}:18", f"{FILE}:19"],
            "bytes_saved": saved, "times": 2, **columns,
        }  # fmt: skip
        return make(
            compiles=[compile_row()],
            fusion_notes=[note],
            kernel_groups=[
                {
                    "stance": "compiled", "name": "triton_poi_fused_gelu_0", "count": 4.0,
                    "ms": 0.3, "clock": "device",
                },
            ],
            generated_kernels=[
                {
                    "compile_key": KEY, "kernel_name": "triton_poi_fused_gelu_0",
                    "category": category, "launch_sites": 2,
                },
            ],
            ceilings=[COPY],
            speedups=[STEP],
        )  # fmt: skip

    def test_bytes_of_all_calls_at_the_copy_bandwidth(self, make):
        (one,) = found(ind_missed_epilogue, self.tables(make))
        assert one.cost.ms_per_step == pytest.approx(0.2)  # 400 MB in each of two calls a step
        assert (one.severity, one.location.line) == ("info", 18)

    def test_no_more_than_the_kernels_take(self, make):
        (one,) = found(ind_missed_epilogue, self.tables(make, saved=10**10))
        assert one.cost.ms_per_step == pytest.approx(0.3)

    @pytest.mark.parametrize(
        "columns",
        [
            {"saved": None},
            {"saved": 100_000_000},
            {"category": "persistent_reduction"},
            {"kind": "epilogue_apart"},
            {"kind": "prologue_not_tried"},
            {"kernels": []},
            {"kernels": ["triton_poi_fused_gelu_0", "triton_per_fused_layer_norm_1"]},
        ],
    )
    def test_what_is_not_said(self, make, columns):
        assert found(ind_missed_epilogue, self.tables(make, **columns)) == []

    def test_no_bandwidth_no_figure(self, make):
        tables = self.tables(make)
        tables.put("ceilings", tables["ceilings"].clear())
        assert found(ind_missed_epilogue, tables) == []


class TestMoreWork:
    @staticmethod
    def tables(make, *, packed, compiled_flops, attention=False, compiled_ms=8.0):
        sides = (("eager", 10, 0.5), ("compiled", compiled_flops, compiled_ms))
        limits = [
            {"stance": stance, "category": "gemm", "flops": flops * 10**9, "count": 2.0}
            for stance, flops, _ in sides
        ]
        limits += [{"stance": "eager", "category": "attention", "count": 1.0}] if attention else []
        pair = {
            "kind": "gemm", "file": FILE, "line": 32, "eager_ms": 0.5, "compiled_ms": compiled_ms,
            "differs": ["operator"], "clock": "device", "ms": compiled_ms - 0.5,
            "eager_count": 1.0, "compiled_count": 1.0,
            "eager_kernels": ["flash"], "compiled_kernels": ["softmax"],
        }  # fmt: skip
        return make(
            speedups=[{"outcome": "hurt", "eager_ms": 2.0, "compiled_ms": 9.0, "speedup": 0.22}],
            library_pairs=[pair],
            kernel_limits=limits,
            matched_kernels=[
                {"stance": stance, "file": FILE, "line": 32, "ms": ms} for stance, _, ms in sides
            ],
            cpu_ops=[{"stance": "eager", "name": "aten::_nested_tensor_from_mask"}] * packed,
        )

    @pytest.mark.parametrize(
        ("packed", "flops", "attention", "says"),
        [
            (True, 150, True, "compiled code computes the padding too"),
            (True, 10, False, "compiled code computes the padding too"),
            (False, 150, False, "compiled code computes more"),
            (False, 150, True, "compiled code calls another operator"),
            (False, 12, False, "compiled code calls another operator"),
        ],
    )
    def test_more_to_compute_is_told_from_another_way(self, make, packed, flops, attention, says):
        tables = self.tables(make, packed=packed, compiled_flops=flops, attention=attention)
        (finding,) = found(ind_slower_library, tables)
        assert finding.title.endswith(says)
        assert (finding.location.line, finding.cost.ms_per_step) == (32, 7.5)
        both = "matrix products: 20.0 GFLOP per step in eager, 300 GFLOP compiled"
        texts = [each.text for each in finding.evidence]
        assert (both in texts) is (flops == 150 and says[-8:] != "operator"), texts

    @pytest.mark.parametrize(
        ("compiled_op", "compiled_ms", "allowed", "fires"),
        [
            ("aten::mm", 4.0, True, True),
            ("aten::mm", 4.0, False, True),
            ("aten::_cudnn_rnn", 4.0, True, False),
            ("aten::mm", 2.1, True, False),
        ],
    )
    def test_an_unrolled_rnn(self, make, compiled_op, compiled_ms, allowed, fires):
        sides = (("eager", "aten::_cudnn_rnn", 2.0), ("compiled", compiled_op, compiled_ms))
        tables = make(
            speedups=[{"outcome": "hurt", "eager_ms": 3.0, "compiled_ms": 5.0, "speedup": 0.6}],
            matched_kernels=[
                {"stance": stance, "cpu_op": op, "name": "gemm", "file": FILE, "line": 36,
                 "count": 8.0, "ms": ms, "clock": "device"}
                for stance, op, ms in sides
            ],
            library_pairs=[],
            environment=[{"name": "allow_rnn", "value": "True"}] * allowed,
            setting_sites=[{"name": "allow_rnn", "file": FILE, "line": 8}] * allowed,
        )  # fmt: skip
        findings = found(ind_slower_library, tables)
        assert bool(findings) is fires
        for finding in findings:
            assert (finding.location.line, finding.cost.ms_per_step) == (36, 2.0)
            assert [place.line for place in finding.also_at] == [8] * allowed
            assert ("Leave allow_rnn off (model.py:8)" in finding.what_to_do) is allowed
            assert finding.evidence[0].text == "aten::_cudnn_rnn runs in eager only"

    def test_a_line_that_loses_little_is_silent(self, make):
        tables = self.tables(make, packed=True, compiled_flops=150, compiled_ms=0.6)
        assert found(ind_slower_library, tables) == []


class TestUserKernel:
    """A Triton kernel of the user's that takes longer in compiled steps."""

    def tables(self, make, *, float64=(), differs=(), **columns):
        pair = {
            "kind": "user_kernel", "file": FILE, "line": 33, "eager_ms": 4.4, "compiled_ms": 8.8,
            "ms": 4.4, "eager_count": 2.0, "compiled_count": 2.0, "clock": "device",
            "eager_kernels": ["unit_rows"], "compiled_kernels": ["unit_rows"],
            "differs": list(differs), "float64_arguments": list(float64), **columns,
        }  # fmt: skip
        groups = [
            {"stance": "eager", "name": "unit_rows", "programs": 4096, "threads": 256},
            {"stance": "compiled", "name": "unit_rows", "programs": 4, "threads": 128},
        ]
        return make(
            speedups=[{"outcome": "hurt", "eager_ms": 5.0, "compiled_ms": 9.0, "speedup": 0.55}],
            library_pairs=[pair],
            kernel_groups=groups,
        )

    def test_arguments_that_are_float64(self, make):
        tables = self.tables(make, float64=["eps", "scale"], differs=["float64", "launch"])
        (finding,) = found(ind_slower_library, tables)
        assert finding.title == (
            "Triton kernel unit_rows at model.py:33: 8.80 ms compiled, 4.40 ms in eager; compiled "
            "code passes eps and scale as float64"
        )
        assert (finding.severity, finding.confidence) == ("warning", "derived")
        assert (finding.location.line, finding.cost.ms_per_step) == (33, pytest.approx(4.4))
        assert finding.evidence[0].text.startswith("eager: 2 × 2.20 ms, 4,096 programs of 256")
        assert finding.snippet.text.splitlines() == [
            "eps = eps.to(tl.float32)", "scale = scale.to(tl.float32)",
        ]  # fmt: skip
        assert finding.remedy == ("torch._inductor.config._use_fp64_for_unbacked_floats=False",)

    @pytest.mark.parametrize(
        ("differs", "says", "confidence"),
        [
            (["launch"], "4 programs of 128 threads, in eager 4,096 programs of 256 threads",
             "derived"),
            ([], "why is not recorded", "heuristic"),
        ],
    )  # fmt: skip
    def test_another_launch_and_an_unknown_reason(self, make, differs, says, confidence):
        (finding,) = found(ind_slower_library, self.tables(make, differs=differs))
        assert finding.title.endswith(f"; {says}")
        assert (finding.confidence, finding.remedy, finding.snippet) == (confidence, (), None)

    def test_more_calls_are_not_slower_calls(self, make):
        tables = self.tables(make, float64=["eps"], differs=["float64"], compiled_count=4.0)
        assert found(ind_slower_library, tables) == []
        tables = self.tables(make, differs=["float64"], float64=["eps"], compiled_count=3.0)
        (finding,) = found(ind_slower_library, tables)
        assert finding.cost.ms_per_step == pytest.approx(8.8 - 6.6)

    @pytest.mark.parametrize(
        "columns",
        [
            {"eager_ms": 8.0},
            {"eager_ms": 0.1, "compiled_ms": 0.3},
            {"clock": "host"},
            {"eager_count": 0.0},
        ],
    )
    def test_what_is_not_said(self, make, columns):
        tables = self.tables(make, float64=["eps"], differs=["float64"], **columns)
        assert found(ind_slower_library, tables) == []


class TestFewPrograms:
    """A kernel of the user's that leaves most of the device idle."""

    def tables(self, make, category="user_kernel", waits=0.1, **columns):
        row = {
            "stance": "compiled", "name": "unit_rows", "category": category, "count": 2.0,
            "ms": 8.8, "share": 0.98, "programs": 4, "threads": 128, "multiprocessors": 132,
            **columns,
        }  # fmt: skip
        eager = {**row, "stance": "eager", "ms": 4.4, "share": 0.89}
        ran = [
            {"stance": "compiled", "category": category, "name": name, "file": FILE, "line": line,
             "ms": ms}
            for name, line, ms in (("unit_rows", 33, 6.0), ("unit_rows", 52, 2.8), ("scan", 9, 9.0))
        ]  # fmt: skip
        return make(
            speedups=[{**STEP, "compiled_ms": 9.0}],
            kernel_groups=[eager, row],
            matched_kernels=ran,
            kernel_limits=[],
            accounting=[
                {"stance": "compiled", "clock": "device", "kind": kind, "category": what, "ms": ms}
                for kind, what, ms in (("busy", category, 8.9), ("idle", "launch_bound", waits))
            ],
        )

    def test_it_is_advice_and_no_reason_for_a_difference(self, make):
        (finding,) = found(ind_slow_kernel, self.tables(make))
        assert finding.title == (
            "Kernel unit_rows at model.py:33 takes 98 % of the busy time with 4 programs on "
            "132 multiprocessors"
        )
        assert (finding.severity, finding.due_ms, finding.cost.ms_per_step) == (
            "warning",
            0.0,
            None,
        )
        assert [place.line for place in (finding.location, *finding.also_at)] == [33, 52]
        assert [one.text for one in finding.evidence] == [
            "eager: 2 × 2.20 ms, 4 programs, 89 % of the busy time",
            "compiled: 2 × 4.40 ms, 4 programs, 98 % of the busy time",
        ]
        assert "132 programs" in finding.what_to_do
        (finding,) = found(ind_slow_kernel, self.tables(make, cpu_op="my::norm", programs=1))
        assert finding.title.endswith("with 1 block on 132 multiprocessors")
        assert finding.snippet is None

    @pytest.mark.parametrize(
        "columns",
        [
            {"programs": 66},
            {"share": 0.29},
            {"count": 400.0},  # 22 µs each
            {"ms": 0.8},  # of a step of 9 ms
            {"waits": 9.0},  # for launches
            {"multiprocessors": None},
            {"programs": None},
            {"ms": None},  # no marked steps
            {"category": "gemm"},
        ],
    )
    def test_what_is_not_said(self, make, columns):
        assert found(ind_slow_kernel, self.tables(make, **columns)) == []
        assert found(ind_slow_kernel, self.tables(make, programs=65, share=0.31, count=100.0))


class TestSlowKernel:
    SOURCE = """
import triton
@triton.jit
def triton_poi_fused_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 67108864
    tmp0 = tl.load(in_ptr0 + (x0), None)
    tmp1 = libdevice.tanh(tmp0)
    tl.store(out_ptr0 + (x0), tmp1, None)
"""

    def tables(self, make, source=SOURCE, ceilings=(COPY, FP32), **columns):
        row = {
            "stance": "compiled", "name": "triton_poi_fused_0", "category": "generated_pointwise",
            "compile_id": "0/0", "dtype": "float32", "count": 1.0, "ms": 0.5,
            "bytes": 536_870_912, "bytes_kind": "exact", "gb_s": 1073.0, "floor_ms": 0.13,
            "of_ceiling": 0.27, "bound": "neither", "ceiling": "copy", **columns,
        }  # fmt: skip
        return make(
            kernel_limits=[row],
            generated_kernels=[
                {
                    "compile_key": KEY, "compile_id": "0/0", "kernel_name": "triton_poi_fused_0",
                    "source_code": source, "user_lines": [f"{FILE}:18"],
                },
            ],
            compiles=[compile_row()],
            ceilings=list(ceilings),
            speedups=[STEP],
        )  # fmt: skip

    def test_far_from_the_bandwidth(self, make):
        (one,) = found(ind_slow_kernel, self.tables(make))
        assert (one.location.line, one.severity) == (18, "info")
        assert one.cost.ms_per_step == pytest.approx(0.5 - 536_870_912 / COPY["value"] / 1e6)
        assert "COORDINATE_DESCENT" in one.snippet.text

    @pytest.mark.parametrize("places", [20, 67_108_864])
    def test_many_values_that_are_added_to_few_places(self, make, places):
        checked = f"""    x0 = xindex
    tl.device_assert(((0 <= tmp1) & (tmp1 < {places})) | ~(xmask), "index out of bounds")
    tl.atomic_add(out_ptr0 + (tmp1), tmp0, None, sem='relaxed')
"""
        source = self.SOURCE.replace("    tl.store(out_ptr0 + (x0), tmp1, None)\n", checked)
        hits = found(ind_slow_kernel, self.tables(make, source, bytes_kind="at_most"))
        assert len(hits) == (places == 20)
        for one in hits:
            assert one.title.startswith("67,108,864 values are added to 20 places at model.py:18")
            assert one.cost.ms_per_step == pytest.approx(0.5 - 536_870_912 / COPY["value"] / 1e6)
            assert "index_add" in one.snippet.text

    def test_divisions_by_a_value_that_is_read(self, make):
        head = "'signature': {'in_ptr0': '*i64', 'in_ptr1': '*i64'}\n@triton.jit\n"
        divided = "    x0 = xindex\n    tmp2 = tl.load(in_ptr1 + (0))\n    tmp1 = (tmp0 % tmp2)\n"
        source = self.SOURCE.replace("@triton.jit\n", head)
        source = source.replace("in_ptr0, out_ptr0", "in_ptr0, in_ptr1, out_ptr0")
        source = source.replace("    tmp0", "    x0 = xindex\n    tmp0")
        tables = self.tables(make, source.replace("    tmp1 = libdevice.tanh(tmp0)\n", divided))
        (one,) = found(ind_slow_kernel, tables)
        assert one.title == (
            "64-bit division at model.py:18 by a value that is read: 50 % of a step"
        )
        assert [each.text for each in one.evidence] == [
            "triton_poi_fused_0: 537 MB in 0.500 ms, 1,073 GB/s",
            "its code makes 67,108,864 of them",
        ]
        # 100 instructions each, of which a product of matrices shows 25 · 10¹² in a second
        assert one.cost.ms_per_step == pytest.approx(67_108_864 * 100 / 25e12 * 1e3)

    def test_an_index_has_no_remedy_and_no_figure(self, make):
        (one,) = found(ind_slow_kernel, self.tables(make, bytes_kind="at_most"))
        assert one.what_to_do.startswith("Nothing to tune")
        assert (one.cost.ms_per_step, one.snippet) == (None, None)

    @pytest.mark.parametrize(
        "columns",
        [
            {"bytes": None, "bytes_kind": None},
            {"bytes": 0},
            {"bytes": 1_000_000, "count": 40.0},
            {"bytes_kind": "at_least"},
            {"bytes": 1_000_000_000},
            {"bound": "compute"},
            {"bound": "overhead"},
            {"bound": "memory_or_cache"},
            {"category": "generated_template"},
            {"dtype": "float64"},
            {"ms": 0.09},
        ],
    )
    def test_what_is_not_judged(self, make, columns):
        assert found(ind_slow_kernel, self.tables(make, **columns)) == []

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("libdevice.tanh(tmp0)", "libdevice.tanh(tl.exp(libdevice.erf(tmp0)))"),
            ("    xnumel = 67108864\n", ""),
            ("libdevice.tanh", "tl.rand"),
        ],
    )
    def test_arithmetic_that_may_be_the_reason(self, make, old, new):
        tables = self.tables(make, source=self.SOURCE.replace(old, new))
        assert found(ind_slow_kernel, tables) == []

    @pytest.mark.parametrize(
        ("dims", "columns", "severity"),
        [
            ("[[4000, 4, 4], [4000, 4, 4]]", {}, "warning"),
            ("[[4000, 4, 4], [4000, 4, 4]]", {"ms": 0.09, "floor_ms": 0.001}, None),
            ("[[4000, 4, 4], [4000, 4, 4]]", {"floor_ms": 0.1}, None),
            ("[[4000, 4, 4], [4000, 4, 4]]", {"bound": "overhead"}, None),
            ("[[500, 4, 16], [500, 16, 8]]", {}, None),
            ("[[4000, 4, 4], [4000]]", {}, None),
            ("[[[4000], 4, 4], [4000, 4, 4]]", {}, None),
            (None, {}, None),
        ],
    )
    def test_batched_products_of_tiny_matrices(self, make, dims, columns, severity):
        row = {
            "stance": "compiled", "name": "gemmSN", "category": "gemm", "count": 6.0, "ms": 0.5,
            "flops": 512_000, "floor_ms": 0.01, "bound": "neither", **columns,
        }  # fmt: skip
        ran = {"stance": "compiled", "cpu_op": "aten::bmm", "file": FILE, "line": 33, "ms": 0.5}
        tables = make(
            speedups=[STEP],
            kernel_limits=[row],
            cpu_ops=[{"stance": "compiled", "name": "aten::bmm", "input_dims": dims}],
            matched_kernels=[ran],
        )
        findings = found(ind_slow_kernel, tables)
        assert [finding.severity for finding in findings] == ([severity] if severity else [])
        for finding in findings:
            assert finding.title.startswith(
                "Products of 4×4 and 4×4 matrices at model.py:33 take 50"
            )
            assert finding.evidence[0].text.startswith("6 × batch of 4,000: 83.3 µs each")
            assert finding.cost.ms_per_step == pytest.approx(0.49)

    @pytest.mark.parametrize(("line", "inverted"), [(33, True), (40, False)])
    def test_products_of_an_inverses_gradient(self, make, line, inverted):
        row = {
            "stance": "compiled", "name": "gemmSN", "category": "gemm", "count": 6.0, "ms": 0.5,
            "flops": 512_000, "floor_ms": 0.01, "bound": "neither",
        }  # fmt: skip
        at = {"stance": "compiled", "file": FILE, "ms": 0.5}
        inverse = {"cpu_op": "aten::linalg_lu_solve", "ops": ["aten.linalg_inv_ex"]}
        dims = "[[4000, 4, 4], [4000, 4, 4]]"
        tables = make(
            speedups=[STEP],
            kernel_limits=[row],
            cpu_ops=[{"stance": "compiled", "name": "aten::bmm", "input_dims": dims}],
            matched_kernels=[
                {**at, "cpu_op": "aten::bmm", "line": 33},
                {**at, **inverse, "line": line},
            ],
        )
        (finding,) = found(ind_slow_kernel, tables)
        assert finding.what_to_do.startswith("These products are those of the inverse") is inverted
        assert (finding.snippet is None) is inverted

    @pytest.mark.parametrize("ceilings", [(COPY,), (COPY, {**FP32, "detail": "tf32 on"})])
    def test_no_rate_of_fp32_no_answer(self, make, ceilings):
        assert found(ind_slow_kernel, self.tables(make, ceilings=ceilings)) == []


class TestCausalMask:
    """Attention of 1 ms in a step of 2 ms; is_causal=True was timed to take 40 % of it."""

    CALL = "torch._C._nn.scaled_dot_product_attention({});  q = None"
    WITH_MASK = "l_q_, l_q_, l_q_, attn_mask = l_self_allowed_"

    def tables(self, make, arguments=WITH_MASK, way="is_causal=True", ms=0.4, end_checks=()):
        text = (
            "class GraphModule(torch.nn.Module):\n"
            '    def forward(self, L_q_: "f16[2, 4, 64, 16]cuda:0", '
            'L_self_allowed_: "b8[64, 64]cuda:0"):\n'
            "        l_q_ = L_q_\n        l_self_allowed_ = L_self_allowed_\n"
            '        biased: "f16[64, 64]cuda:0" = l_self_allowed_ + 1\n'
            f"        # File: {FILE}:9 in forward, code: return attention(q, q, q, self.allowed)\n"
            f'        out: "f16[2, 4, 64, 16]cuda:0" = {self.CALL.format(arguments)}\n'
            "        return (out,)\n"
        )
        gain = {
            "kind": "attention",
            "way": way,
            "shapes": 1,
            "base_ms": 1.0,
            "ms": ms,
            "clock": "device",
        }
        return make(
            graphs=[{"compile_key": KEY, "kind": "dynamo_output", "text": text}],
            guards=[{"compile_key": KEY, "source_name": "L['self'].allowed"}],
            kernel_groups=[
                {"stance": "compiled", "category": "attention", "ms": 1.0, "clock": "device"}
            ],
            shape_gains=[gain],
            speedups=[{**STEP, "compiled_ms": 2.0}],
            step_counts=[COUNTS],
            end_checks=list(end_checks),
        )

    @pytest.mark.parametrize("arguments", [WITH_MASK, "l_q_, l_q_, l_q_, l_self_allowed_, 0.0"])
    def test_it_is_named_with_what_is_causal_saves(self, make, arguments):
        (finding,) = found(ind_causal_mask, self.tables(make, arguments))
        assert "reads self.allowed, a causal mask" in finding.title
        assert (finding.location.line, finding.cost.ms_per_step) == (9, pytest.approx(0.6))

    def test_a_mask_that_the_graph_computes_is_known_by_a_call_made_again(self, make):
        computed = "l_q_, l_q_, l_q_, attn_mask = biased"
        tables = self.tables(make, computed, end_checks=[{"compared": True, "region_id": 0}])
        (finding,) = found(ind_causal_mask, tables)
        assert "reads biased, a causal mask" in finding.title
        assert finding.what_to_do.endswith("keep it for batches with padding.")

    @pytest.mark.parametrize(
        "other",
        [
            {"arguments": "l_q_, l_q_, l_q_, is_causal = True"},  # the mask is another call's
            {"arguments": "l_q_, l_q_, l_q_, attn_mask = biased"},  # worked out of a causal one
            {"way": "flash attention"},  # its values are not known to be causal
            {"ms": 0.99},
        ],
    )
    def test_without_a_mask_or_a_gain_nothing_is_said(self, make, other):
        assert found(ind_causal_mask, self.tables(make, **other)) == []
