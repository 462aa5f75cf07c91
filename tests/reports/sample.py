"""Diagnoses as the pipeline makes them, by hand: one for every outcome, one empty, one hostile."""

import types
import typing

import msgspec
import sample_explained
import sample_odd
from msgspec import structs

from traceview.diagnosis.model import (
    AccountRow,
    CompileRow,
    CompileTime,
    Diagnosis,
    FusedKernel,
    Graph,
    GraphBreakSite,
    KernelGroup,
    NotChecked,
    Reading,
    ReadingRow,
    Reason,
    RecompileChain,
    RecompileLink,
    Region,
    SourceExcerpt,
    StanceCounts,
    Verdict,
)
from traceview.rules.finding import Cost, Evidence, Finding, Location, Snippet

GIB = 1024**3
SCRIPT = "/home/ada/train/model.py"
SOURCE = """\
class Block(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.sigmoid(x) * torch.tanh(x)
        if h.mean().item() > 0.5:  # a threshold
            h = h + self.bias
        return h.relu()
""".splitlines()
TRITON = """\
import triton
import triton.language as tl

@triton.jit
def triton_poi_fused_add_mul_relu_sigmoid_tanh_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xnumel = 4194304
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    tmp0 = tl.load(in_ptr0 + (xindex), None)
    tmp1 = tl.sigmoid(tmp0)  # from sigmoid
    tl.store(out_ptr0 + (xindex), tmp1, None)
"""
GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[1024, 4096]"):
        l_x_ = L_x_
        sigmoid: "f32[1024, 4096]" = torch.sigmoid(l_x_)
        return (sigmoid,)
"""


def verdict(outcome, headline, support="", *remarks, **figures):
    """A verdict whose sentence is made of its parts."""
    headline = headline.rstrip(".")
    opening = f"{headline} ({support})." if support else f"{headline}."
    sentence = " ".join((opening, *remarks))
    words = {"sentence": sentence, "headline": headline, "support": support, "remarks": remarks}
    return Verdict(outcome, **words, **figures)


def finding(code="TV101", rule="gb-item", severity="warning", **changes):
    fields = {
        "code": code,
        "rule": rule,
        "severity": severity,
        "title": "`.item()` breaks the graph in `forward`",
        "explanation": "`h.mean().item()` needs the number on the host, so the graph ends here and "
        "the host waits for the device.\n\nEach step enters two compiled regions instead of one.",
        "cost": Cost(ms_per_step=0.212, about="host time between regions, profiler window"),
        "confidence": "measured",
        "location": Location(SCRIPT, 43, "forward"),
        "evidence": (
            Evidence("graph break GB0124 at model.py:43, 1 site", "graph_breaks",
                     "raw/cold/structured/dedicated_log_torch_trace_x.log", 812),
            Evidence("aten::_local_scalar_dense once a step", "cpu_ops"),
        ),
        "what_to_do": "Keep the comparison on the device: `torch.where(h.mean() > 0.5, …)`.",
        "snippet": Snippet(
            "diff",
            "-        if h.mean().item() > 0.5:\n-            h = h + self.bias\n"
            "+        h = torch.where(h.mean() > 0.5, h + self.bias, h)\n",
        ),
    }  # fmt: skip
    return Finding(**{**fields, **changes})


LIMIT = finding(
    "TV202", "rc-limit-hit", "error", title="`lr` hit the recompile limit (8)",
    cost=Cost(ms_per_step=0.31, about="compiled 0.79 ms against eager 0.48 ms"), snippet=None,
    location=Location("/home/ada/train/schedule.py", 18, "lr"),
)  # fmt: skip
FINDINGS = (
    finding(),
    finding("TV203", "rc-module-int-attr", "error",
            title="`self.step` changes each call, and every value is compiled again",
            cost=Cost(seconds=12.4, about="host time in recompiles after the first"),
            location=Location("/home/ada/train/schedule.py", 18, "lr"), snippet=None,
            confidence="derived", also_at=(Location(SCRIPT, 60, None),), symptoms=(LIMIT,),
            inside=Location("/opt/env/lib/python3.12/site-packages/sched/rates.py", 7, "warm"),
            whole_cost=Cost(0.31, 12.4, "the dearest figure of each kind")),
    finding("TV510", "ap-launch-bound", "info",
            title="eager is launch bound: the device waits for the host 61 % of a step",
            cost=Cost(), location=None, snippet=None, confidence="heuristic",
            what_to_do="Nothing: this is what torch.compile removed."),
    finding("TV901", "ind-tf32-off", "warning",
            title="float32 matrix products run without TF32", cost=Cost(ms_per_step=0.051),
            location=Location(SCRIPT, 12, "<module>"),
            what_to_do="Set it once, before the first step, if 10 bits of mantissa are enough.",
            snippet=Snippet("python", 'torch.set_float32_matmul_precision("high")\n')),
)  # fmt: skip

ACCOUNTING = {
    "eager": (
        AccountRow("elementwise", 3.42, "busy", 34.0, "device"),
        AccountRow("gemm", 0.31, "busy", 2.0, "device"),
        AccountRow("reduction", 0.12, "busy", 1.0, "device"),
        AccountRow("idle_launch_bound", 0.64, "idle", None, "device"),
        AccountRow("unexplained", 0.06, "unexplained", None, "device"),
    ),
    "compiled": (
        AccountRow("generated_pointwise", 0.38, "busy", 1.0, "device"),
        AccountRow("gemm", 0.31, "busy", 2.0, "device"),
        AccountRow("overhead_cache_lookup", 0.02, "overhead", None, "host"),
        AccountRow("idle_sync", 0.07, "idle", None, "device"),
        AccountRow("unexplained", 0.01, "unexplained", None, "device"),
    ),
}
COUNTS = {
    "eager": StanceCounts(5.1, 3.85, 0.70, 37.0, 37.0, 0.0, 1.0, 0.0, None, None,
                          None, 2 * GIB, 3 * GIB, "torch.cuda"),
    "compiled": StanceCounts(1.2, 0.69, 0.10, 3.0, 3.0, 0.0, 1.0, 2.0, 0.011, 0.21,
                             None, GIB, 2 * GIB, "torch.cuda"),
}  # fmt: skip
PHASES = {"dynamo": 0.61, "aot": 0.42, "inductor": 1.3, "codegen": 2.2}


def helped():
    """Everything filled in, as from a GPU run."""
    return Diagnosis(
        verdict=verdict(
            "helped",
            "torch.compile helped: a step takes 0.790 ms instead of 4.55 ms",
            "5.76×, 95 % interval 5.71× to 5.80×, device time, 8 block pairs",
            "The 3.76 ms saved come from fusion 3.16 ms (84 %).",
            speedup=5.76,
            speedup_interval=(5.71, 5.80),
            eager_ms=4.55,
            compiled_ms=0.79,
            clock="device",
            blocks=8,
            blocks_measured=9,
            steps_timed=640,
            basis="paired_blocks",
            ended="stopped when the plan was complete",
            difference_ms=-3.76,
            why=(Reason("fusion", -3.16, 0.84, "measured", None),),
            unexplained_ms=-0.6,
            advice=("TV101",),
        ),
        break_even_steps=1206,
        compile_time=CompileTime(4.53, 1.1, PHASES, (
            {"co_name": "forward", "user_file": SCRIPT, "user_line": 41, "compiles": 2,
             "total_s": 4.1, "dynamo_s": 0.5, "aot_s": 0.4, "inductor_s": 1.1, "codegen_s": 2.1},
            {"co_name": "lr", "user_file": "schedule.py", "user_line": 18, "compiles": 1,
             "total_s": 0.43, "dynamo_s": 0.1, "aot_s": None, "inductor_s": 0.2, "codegen_s": 0.1},
        ), 4710.0),
        accounting=ACCOUNTING,
        counts=COUNTS,
        regions=(Region(0, "Block", "module", SCRIPT, 71, {"mode": None, "dynamic": False}, 1290,
                        1.0, 4.4, 0.75, 0.94, 4.1, 2, 1, 1),),
        findings=FINDINGS,
        excerpts=(SourceExcerpt(SCRIPT, 43, tuple(enumerate(SOURCE, 40))),),
        not_checked=(
            NotChecked("mem-peak-up", "TV701", "a memory reading of both stances",
                       "traceview diagnose --blocks 4 model.py"),
            NotChecked("rc-limit-hit", "TV205", "a structured log"),
        ),
        reading=Reading(20311, 3, 2, (
            ReadingRow("raw/cold/stderr.txt", "foreign_line", 3, 17, "Epoch 1: 3%|▏"),)),
        environment={
            "torch_version": "2.11.0+cu130", "device_name": "NVIDIA H200", "triton_version": "3.6",
            "settings": [{"section": "env", "name": "TORCH_LOGS", "value": "+dynamo"}],
            "inductor_config": {"max_autotune": True, "nested": {"deep": [1, 2]}},
        },
        kernels=(
            KernelGroup("eager", "vectorized_elementwise_kernel<4, sigmoid>", "elementwise", 34.0,
                        3.42, 0.888, "device", None),
            KernelGroup("eager", "sm90_xmma_gemm_f32f32", "gemm", 2.0, 0.31, 0.08, "device", None),
            KernelGroup("compiled", "triton_poi_fused_add_mul_relu_sigmoid_tanh_0",
                        "generated_pointwise", 1.0, 0.38, 0.55, "device", "0/0"),
        ),
        fused=(
            FusedKernel("triton_poi_fused_add_mul_relu_sigmoid_tanh_0", "generated_pointwise",
                        "0/0", ("aten.sigmoid", "aten.tanh", "aten.mul", "aten.add", "aten.relu"),
                        ("model.py:42", "model.py:44"), 0.38, 1.0, "device", TRITON, 3.42, 34.0),
            FusedKernel("cpp_fused_add_1", "generated_pointwise", "0/1", ("aten.add",), (), None,
                        None, None, '#include <x.h>\nextern "C" void kernel(float* p) { *p = 1; }'),
        ),
        compiles=(
            CompileRow("0/0", "forward", SCRIPT, 41, "ok", 0.0, 3.9, PHASES, 6, 11, None),
            CompileRow("0/1", "forward", SCRIPT, 41, "ok", 5.2, 0.6,
                       {"dynamo": 0.1, "inductor": 0.3}, 6, 11, "size mismatch"),
            CompileRow("1/0", "lr", "schedule.py", 18, "skipped", None, None, {}, None, None, None),
        ),
        recompiles=(RecompileChain("forward", SCRIPT, 41, 9, True, (
            RecompileLink("0/1", "tensor 'x' size mismatch at index 0", "size", "x", "32", "17",
                          0.6, "0/0"),
            RecompileLink("0/2", "self.step == 3", "module_int", "self.step", "3", None, None,
                          None),
        )),),
        graph_breaks=(GraphBreakSite(
            SCRIPT, 43, "forward", "GB0124", "Unsupported Tensor.item() call with "
            "capture_scalar_outputs=False", 1, "Dynamo does not capture `.item()`.",
            ("Set `torch._dynamo.config.capture_scalar_outputs = True`.",), True),),
        graphs=(
            Graph("0/0", "forward", "forward", 6, GRAPH, TRITON, ("triton_poi_fused_0",)),
            Graph("0/1", "forward", "forward", None, None, None),
        ),
        pairs=tuple(
            {"pid": 1, "pair_index": i, "eager_ms": 4.5 + i / 100, "compiled_ms": 0.79,
             "speedup": 5.69 + 0.02 * i, "steps": 40, "clock": "device", "used": i != 0,
             "left_out": "compile inside" if i == 0 else None}
            for i in range(9)
        ),
        explanation=sample_explained.FULL,
        notes=("The eager profiler window holds 5 steps.",),
        links={"tlparse": "tlparse/cold/index.html", "structured log": "raw/cold/structured"},
        target="train/model.py --batch 64",
        created="2026-03-01T12:00:00+00:00",
        traceview="0.1.0",
    )  # fmt: skip


def hurt():
    """Slower, with a recompile chain."""
    hurts = verdict(
        "hurt",
        "torch.compile hurt: a step takes 3.82 ms instead of 2.10 ms",
        "0.55×",
        speedup=0.55,
        speedup_interval=(0.52, 0.61),
        eager_ms=2.10,
        compiled_ms=3.82,
        clock="host",
        blocks=8,
        blocks_measured=8,
        steps_timed=320,
        basis="paired_blocks",
    )
    return structs.replace(helped(), verdict=hurts, break_even_steps=None, target="loop.py")


def failed():
    """The script crashed in its third step: little was recorded."""
    sentence = "The target failed before a step was timed: RuntimeError in model.py:43."
    return structs.replace(
        empty(),
        verdict=verdict("failed", sentence, ended="exit code 1 after 4.2 s"),
        findings=(finding(cost=Cost(), severity="error"),),
        target="crash.py",
        reading=Reading(12, 0),
    )


def not_compiled():
    """A script that never compiles."""
    return structs.replace(
        empty(),
        verdict=verdict("not_compiled", "Nothing was compiled: no torch.compile call was made"),
        target="plain.py",
    )


def empty():
    """What an empty run folder gives."""
    return Diagnosis(
        verdict=verdict("not_measured", "Nothing was measured"),
        break_even_steps=None,
        compile_time=CompileTime(None, None, {}, ()),
        accounting={},
        counts={},
        regions=(),
        findings=(),
        excerpts=(),
        not_checked=(),
        reading=Reading(0, 0),
        environment={},
    )


def large():
    """500 compiles, 2,000 graph breaks and 300 kernels with their source."""
    base = helped()
    compiled, fused, broken = base.compiles[0], base.fused[0], base.graph_breaks[0]
    return structs.replace(
        base,
        compiles=tuple(
            structs.replace(compiled, compile_id=f"{i // 8}/{i % 8}", started_s=float(i))
            for i in range(500)
        ),
        graph_breaks=tuple(structs.replace(broken, line=i) for i in range(2000)),
        fused=tuple(
            structs.replace(fused, kernel_name=f"triton_poi_fused_{i}", source_code=TRITON * 8)
            for i in range(300)
        ),
        kernels=tuple(
            structs.replace(base.kernels[2], name=f"triton_poi_fused_{i}") for i in range(300)
        ),
    )


ATTACKS = (
    "<script>alert('pwned')</script><img src=x onerror=alert(1)>",
    "]]></style></script></title><!-- \" ' ` ``` ~~~ ```` \n\n``` \n</details><h1>pwned</h1>",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x00\x07\x9b1m \u202egnp.exe\u2066 \ud800 \r\n",
    "{{ 7 * 7 }} {% raw %} | a | b | [x](javascript:alert(1)) ![i](https://evil.example/x.png) @a",
    "javascript:alert(1)//\"onclick=alert(1) x='",
)


def hostile(size=100_000):
    """``helped`` with an attack in every text and ``size`` characters in every one of them."""
    return _poison(helped(), Poison(size))


def absurd(offset=0):
    """``helped`` whose explanation and accounting hold an odd number in every place for one."""
    odd = sample_odd.Odd(offset)
    base = helped()
    return structs.replace(
        base,
        explanation=sample_odd.bend(base.explanation, odd),
        accounting=sample_odd.bend(base.accounting, odd),
        fused=sample_odd.bend(base.fused, odd),
        compiles=sample_odd.bend(base.compiles, odd),
    )


def many():
    """``helped`` with more of everything than a page has room for."""
    base = helped()
    x = base.explanation
    lanes = tuple(
        structs.replace(lane, name=f"stream {i}", spans=lane.spans * 40)
        for i, lane in enumerate(x.timelines[0].lanes * 20)
    )
    changed = {
        "timelines": tuple(structs.replace(step, lanes=lanes) for step in x.timelines),
        "matching": structs.replace(x.matching, groups=x.matching.groups * 400),
    }
    for name in ("waterfall", "details", "limits", "ceilings", "fusion", "passes", "call_path",
                 "guards", "phases", "first_calls", "autotuning"):  # fmt: skip
        changed[name] = getattr(x, name) * 500
    return structs.replace(base, explanation=structs.replace(x, **changed))


class Poison:
    """Hands out the attacks in turn."""

    def __init__(self, size):
        self.size, self.turn = size, 0

    def text(self):
        self.turn += 1
        attack = ATTACKS[self.turn % len(ATTACKS)]
        return (attack + "漢字<b>é" * self.size)[: self.size] if self.size else attack


_KEPT = {"outcome", "severity", "confidence", "language", "basis", "stance"}


def _poison(value, poison):
    """The same shape with other words; what has a closed set of values keeps it."""
    if isinstance(value, str):
        return poison.text()
    if isinstance(value, msgspec.Struct):
        changed = {
            f.name: _poison(getattr(value, f.name), poison)
            for f in structs.fields(value)
            if f.name not in _KEPT
        }
        changed |= {
            f.name: poison.text()
            for f in structs.fields(value)
            if changed.get(f.name, 0) is None and _takes_text(value, f.name)
        }
        return structs.replace(value, **changed)
    if isinstance(value, tuple | list):
        return type(value)(_poison(item, poison) for item in value)
    if isinstance(value, dict):
        stances = set(value) <= {"eager", "compiled"}
        names = {"speedup", "used", "eager_ms", "compiled_ms", "steps", "left_out", "clock"}
        return {
            key if stances or key in names else poison.text()[:2000]: _poison(item, poison)
            for key, item in value.items()
        }
    return value


def _takes_text(value, name):
    hint = typing.get_type_hints(type(value))[name]
    return isinstance(hint, types.UnionType) and str in typing.get_args(hint)


ALL = {
    "helped": helped,
    "hurt": hurt,
    "failed": failed,
    "not_compiled": not_compiled,
    "empty": empty,
    "hostile": hostile,
    "absurd": absurd,
}
