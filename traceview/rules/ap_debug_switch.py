"""
## What it finds
A switch of torch's for finding errors that is on while the steps run: anomaly detection, autograd's
profiler, Inductor's `nan_asserts`, `CUDA_LAUNCH_BLOCKING=1`, `PYTORCH_NO_CUDA_MEMORY_CACHING`,
deterministic algorithms, `torch.backends.cudnn.enabled = False`. Variables that keep MKL, oneDNN or
ATen from a CPU's wider vectors (`MKL_CBWR=COMPATIBLE`). And backends of attention that are switched
off, so that it runs as separate operators.

## Why it costs
Anomaly detection looks for NaN in every gradient and reads the answer, so the host waits for the
GPU once a gradient; it also keeps a Python stack for every operator. `nan_asserts` does that with
every input of compiled code, in compiled steps only. `CUDA_LAUNCH_BLOCKING=1` waits
after every launch. Without the caching allocator each tensor is a `cudaMalloc` and a `cudaFree`.
Deterministic writes by index (`index_add`, `index_put`, `scatter_add`) sort the index first, and
Inductor leaves them to that operator. Without cuDNN a convolution is unfolded and multiplied sample
by sample, an LSTM run cell by cell. Without its fused backends `scaled_dot_product_attention` is
two products and a softmax, and the whole matrix of scores goes through memory, of half precision
too in float32. MKL's code for old CPUs multiplies at half of the rate or less. Eager and compiled
steps pay alike, and compiling gains less than it could.

## Evidence
The value of the switch when the steps began to be timed. Of anomaly detection, also its checks in
the profiled backward, and of `nan_asserts` those in generated code, which are the cost: their part
of the profiled step, on the step as timed.
Of deterministic algorithms the kernels of sorting writes by index, without cuDNN those of torch's
own convolutions and recurrent cells: a warning where they take much of the step, else information,
as results may have to be the same every time.
Of attention its line, and what the kernels of that line take in a compiled step. The fused backends
are timed on its shapes when the script has ended, without masks: then the cost is what the best one
saves. Where the settings were not recorded, lines that switch backends off are the evidence.

## What to do
Switch it off outside of debugging. Leave one fused backend of attention on, and put
`torch.nn.attention.sdpa_kernel` around what needs separate operators. Compile into an empty cache
then (`TORCHINDUCTOR_CACHE_DIR`): AOTAutograd's does not look at these switches, and gives back the
separate operators of an earlier run.

## References
- https://docs.pytorch.org/docs/stable/autograd.html
- https://docs.pytorch.org/docs/stable/notes/cuda.html
- https://github.com/Deep-MI/FastSurfer/pull/892
- https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
- https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html
- torch/autograd/anomaly_mode.py
- torch/_inductor/lowering.py, `index_put_impl_`
- aten/src/ATen/native/cuda/ConvolutionMM2d.cu
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.slow_switches import FUSED_ATTENTION, SEPARATE
from traceview.rules._gain import at_first, location
from traceview.rules._starts import NO_AUTOGRAD_CACHE, options, setting_line
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    compile_call,
    first_rank,
    line_of,
    milliseconds,
    plural,
    rows,
    severity,
    short,
)

CODE = "TV424"
NEEDS = frozenset({"slow_switches"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"other_kernels"})

#: What is on, what that does, and what to do.
_SWITCHES = {
    "autograd.detect_anomaly": (
        "Anomaly detection is on",
        "torch checks every gradient for NaN and reads the answer, and keeps a Python stack for "
        "every operator of the forward.",
        "Switch it off outside of debugging: torch.autograd.set_detect_anomaly(False).",
    ),
    "inductor.nan_asserts": (
        "Compiled code checks its inputs for NaN and infinity",
        "The option nan_asserts makes it look at each tensor that a graph takes, weights and saved "
        "tensors included, and read the answer.",
        "Drop nan_asserts from the options of torch.compile, torch._inductor.config or the "
        "environment (TORCHINDUCTOR_NAN_ASSERTS) outside of debugging.",
    ),
    "autograd.profiler": (
        "The script's own autograd profiler is on",
        "It records every operator, which costs microseconds each.",
        "Profile a few steps only (torch.profiler.schedule), or none while you measure.",
    ),
    "CUDA_LAUNCH_BLOCKING": (
        "CUDA_LAUNCH_BLOCKING=1 is set",
        "The host waits for each kernel before it launches the next one.",
        "Unset it outside of debugging.",
    ),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (
        "PYTORCH_NO_CUDA_MEMORY_CACHING is set",
        "Each tensor on the GPU is a cudaMalloc and a cudaFree, which waits for the GPU.",
        "Unset it outside of debugging.",
    ),
    "MKL_CBWR": (
        "MKL_CBWR keeps MKL from this CPU's vectors",
        "With this value, MKL's matrix products run the code of old CPUs, for the same results on "
        "all of them: at a half of their rate or less.",
        "Drop it, or set MKL_CBWR=AUTO (AVX2 for the same results on newer CPUs).",
    ),
    "MKL_ENABLE_INSTRUCTIONS": (
        "MKL_ENABLE_INSTRUCTIONS keeps MKL from this CPU's vectors",
        "MKL's matrix products run the code of old CPUs.",
        "Drop it.",
    ),
    "ONEDNN_MAX_CPU_ISA": (
        "ONEDNN_MAX_CPU_ISA keeps oneDNN from this CPU's vectors",
        "oneDNN's convolutions and products run the code of old CPUs.",
        "Drop it.",
    ),
    "ATEN_CPU_CAPABILITY": (
        "ATEN_CPU_CAPABILITY=default keeps torch from this CPU's vectors",
        "ATen's kernels, and Inductor's, are compiled for any CPU.",
        "Drop it.",
    ),
    "deterministic_algorithms": (
        "Deterministic algorithms are on",
        "Some operators (scatter, index_add, some convolutions) have only slower ones.",
        "Leave it on where results must be the same every time, and off elsewhere.",
    ),
    "cudnn.enabled": (
        "cuDNN is off",
        "torch's own convolutions unfold and multiply sample by sample, its recurrent layers run "
        "cell by cell; cuDNN has one kernel for many of these.",
        "Leave cuDNN on: drop the line, or set torch.backends.cudnn.enabled = True. Off is for "
        "finding errors of cuDNN's.",
    ),
}
_BACKENDS = ("cuda.flash_sdp", "cuda.mem_efficient_sdp", "cuda.cudnn_sdp")
#: Settings that undo a switch while the process runs. A variable that is read once has none.
_UNDONE = {
    "autograd.detect_anomaly": ("detect_anomaly=False",),
    "deterministic_algorithms": ("deterministic_debug_mode=default", NO_AUTOGRAD_CACHE),
    "cudnn.enabled": ("torch.backends.cudnn.enabled=True", NO_AUTOGRAD_CACHE),
    "inductor.nan_asserts": ("torch._inductor.config.nan_asserts=False",),
}
#: Switches whose cost are kernels that run because of them, and what these do.
_KERNELS = {
    "deterministic_algorithms": "writes by index that sort first",
    "cudnn.enabled": "torch's own convolutions and recurrent cells",
}


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each switch that is on."""
    every = first_rank(rows(tables, "slow_switches"))
    yield from (_separate_attention(tables, row) for row in every if row["name"] == FUSED_ATTENTION)
    for switch in (row for row in every if row["name"] in _SWITCHES):
        what, why, what_to_do = _SWITCHES[switch["name"]]
        place, undone = line_of(switch), _UNDONE.get(switch["name"], ())
        if switch["name"] == "inductor.nan_asserts":
            asked = [row for row in rows(tables, "regions") if "nan_asserts" in options(row)]
            undone = ("options.nan_asserts=False",) if asked else undone
            made = compile_call(asked[0]) if asked else None
            place = made or setting_line(tables, "nan_asserts", "TORCHINDUCTOR_NAN_ASSERTS")
        evidence = [Evidence(f"{switch['name']}: {switch['value']}", "environment")]
        if switch["checks"]:
            checks = f"{plural(round(switch['checks']), 'tensor')} checked per step"
            took = f", {milliseconds(switch['ms'])}" if switch["ms"] else ""
            evidence.append(Evidence(f"{checks}{took}", "cpu_ops"))
        if switch["driver_calls"]:
            calls = f"{plural(round(switch['driver_calls']), 'call')} for memory per step"
            took = f", {milliseconds(switch['ms'])}" if switch["ms"] else ""
            evidence.append(Evidence(f"{calls}{took}", "kernel_launches"))
        by_kernels = _KERNELS.get(switch["name"])
        if switch["kernels"] and switch["ms"]:
            ran = f"{plural(round(switch['kernels']), 'kernel')} of {by_kernels} per compiled step"
            evidence.append(Evidence(f"{ran}, {milliseconds(switch['ms'])}", "kernel_groups"))
        yield Finding(
            code=CODE,
            rule="ap-debug-switch",
            severity=(
                "info" if by_kernels and not switch["ms"] else severity(tables, switch["ms"])
            ),
            title=f"{what}{f' ({short(place)})' if place else ''}: it slows every step",
            explanation=why,
            cost=Cost(
                switch["ms"] or None,
                None,
                f"{by_kernels}, as profiled; faster kernels do the same work"
                if by_kernels
                else "its checks of tensors, their part of the profiled step"
                if switch["checks"]
                else "its calls for memory, their part of the profiled step",
            ),
            confidence="derived" if switch["ms"] else "heuristic",
            location=place,
            evidence=tuple(evidence),
            what_to_do=what_to_do,
            remedy=undone,
        )


def _separate_attention(tables: Tables, switch: Row) -> Finding:
    """``switch``: the backends of attention together."""
    place = line_of(switch)
    calls = [at for text in switch["user_lines"] or () if (at := location(text))]
    settings = first_rank(rows(tables, "environment"))
    off = [row["name"] for row in settings if row["name"] in _BACKENDS and row["value"] == "False"]
    within = any(
        place and (row["file"], row["line"]) == (place.file, place.line)
        for row in rows(tables, "setting_sites", name=SEPARATE)
    )
    cost, best = _saved(tables, switch["ms"])
    evidence = [Evidence(f"{name}: False", "environment") for name in off]
    if switch["ms"]:
        ran = f"{plural(round(switch['kernels']), 'kernel')} of attention per compiled step"
        evidence.insert(0, Evidence(f"{ran}, {milliseconds(switch['ms'])}", "matched_kernels"))
    if place:
        evidence.append(Evidence(f"{short(place)} switches backends off", "setting_sites"))
    where = at_first(*calls)
    backend = best["way"].upper().replace(" ", "_") if best else "EFFICIENT_ATTENTION"
    on_cpu = {row["device_name"] for row in rows(tables, "runs")} == {"cpu"}
    if on_cpu:
        backend = "FLASH_ATTENTION"
    places: list[Location] = [*([place] if place else []), *calls]
    return Finding(
        code=CODE,
        rule="ap-debug-switch",
        severity="info" if cost.ms_per_step is None else severity(tables, cost.ms_per_step),
        title=(
            f"Attention{where} runs as separate operators: its fused backends are switched off"
            f"{f' ({short(place)})' if place else ''}"
        ),
        explanation=(
            "Without a fused backend scaled_dot_product_attention is two products and a softmax, "
            "compiled or not, and the whole matrix of scores goes through memory, of half "
            "precision too in float32."
        ),
        cost=cost,
        confidence="measured" if best and switch["ms"] else "derived",
        location=places[0] if places else None,
        evidence=tuple(evidence),
        what_to_do=(
            "Take the switch away, or leave one fused backend on. Where something needs separate "
            "operators (a second derivative, say), put sdpa_kernel around that alone. Start with "
            "an empty compile cache: torch's does not look at these switches."
        ),
        snippet=Snippet(
            "python",
            "from torch.nn.attention import SDPBackend, sdpa_kernel\n\n"
            f"with sdpa_kernel([SDPBackend.{backend}, SDPBackend.MATH]):  # those that may run\n"
            "    y = model(x)",
        ),
        remedy=() if within else (f"sdpa={backend}", NO_AUTOGRAD_CACHE),
        also_at=tuple(places[1:4]),
    )


def _saved(tables: Tables, ms: float | None) -> tuple[Cost, Row | None]:
    """What a fused backend saves of ``ms``, and the row of ``shape_gains`` that shows it."""
    gains = [
        row
        for row in first_rank(rows(tables, "shape_gains", kind="attention"))
        if row["way"].endswith(" attention")
    ]
    best = max(gains, key=lambda row: row["share"], default=None)
    if not best or not ms:
        about = "attention as separate operators; a fused kernel takes a part of it"
        return Cost(ms, None, about), best
    both = f"{milliseconds(best['base_ms'])}, {best['way']} {milliseconds(best['ms'])}"
    # Timed in eager, forward only; compiled, these operators may take less.
    saved = max(0.0, min(ms * best["share"], ms - best["ms"]))
    return Cost(saved, None, f"of {milliseconds(ms)} in attention, measured in eager: {both}"), best
