"""Which scenario shows which rule, and at which line of the script the finding must point."""

import json
from pathlib import Path
from typing import NamedTuple

RUNS = Path(__file__).resolve().parents[2] / "fixtures" / "runs"


def recorded():
    """The names in the index of recorded runs."""
    index = RUNS / "INDEX.json"
    return set(json.loads(index.read_text())) if index.exists() else set()


class Scenario(NamedTuple):
    """``name`` is GROUP/NAME; ``line`` is text of the line that the finding names."""

    name: str
    line: str | None = None

    @property
    def run(self):
        return self.name.replace("/", "-")


def _on(group, *entries):
    return tuple(Scenario(f"{group}/{name}", line) for name, line in entries)


def _good(*names):
    return tuple(Scenario(name) for name in names)


SCENARIOS = {
    "gb-item": (_on("bad", ("gb_item", "peak = ")), _good("good/gb_item")),
    "gb-data-dependent": (
        _on("bad", ("gb_data_dependent", "if y.abs().max() > 3.0")),
        _good("good/gb_data_dependent"),
    ),
    "gb-side-effect-io": (
        _on("bad", ("gb_side_effect_io", 'print("gated"')),
        _good("good/gb_side_effect_io"),
    ),
    "gb-frame-skipped": (
        _on("bad", ("gb_frame_skipped", "if (y - x).abs().max()")),
        _good("good/gb_frame_skipped"),
    ),
    "gb-fragmented": (
        _on("bad", ("gb_fragmented", "y = record(self.name, y)")),
        _good("good/gb_fragmented", "bad/gb_item"),
    ),
    "cap-nothing-compiled": (
        _on(
            "bad",
            ("cap_nothing_compiled_method", "torch.compile(Generator"),
            ("cap_nothing_compiled_dropped", "torch.compile(model)"),
            ("cap_nothing_compiled_forced", "model = torch.compile(model)"),
        ),
        _good("good/cap_nothing_compiled"),
    ),
    "cap-debug-backend": (
        _on("bad", ("cap_debug_backend", 'backend="aot_eager")')),
        _good("good/cap_debug_backend"),
    ),
    "cap-suppressed-failure": (
        _on("bad", ("cap_suppressed_failure", "def forward")),
        _good("good/cap_suppressed_failure"),
    ),
    "rc-dynamic-false": (
        _on("bad", ("rc_dynamic_false", "dynamic=False)")),
        _good("good/rc_dynamic_false"),
    ),
    "rc-limit-hit": (
        _on("bad", ("rc_limit_hit", "bonus = "), ("rc_module_int_attr", "self.step += 1")),
        _good("good/rc_limit_hit"),
    ),
    "rc-module-int-attr": (
        _on("bad", ("rc_module_int_attr", "self.step += 1")),
        _good("good/rc_module_int_attr"),
    ),
    "rc-python-constant": (
        _on("bad", ("rc_python_constant", "return ACTIVATIONS[kind]")),
        _good("good/rc_python_constant", "healthy/int_argument"),
    ),
    "rc-auto-dynamic": (
        _on("bad", ("rc_auto_dynamic", "def score(x)")),
        _good("good/rc_auto_dynamic", "bad/rc_module_int_attr"),
    ),
    "ind-tf32-off": (_on("gpu", ("tf32_off", None)), _good("gpu/gemm_bound", "gpu/pointwise")),
    "ap-gemm-bound": (_on("bad", ("ap_gemm_bound", None)), _good("good/ap_gemm_bound")),
    "mem-peak-up": (
        _on("gpu", ("mem_peak_up", "torch.compile(normalise)")),
        _good("gpu/pointwise"),
    ),
    "ap-call-overhead": (
        _on("bad", ("ap_call_overhead", "torch.compile(update)")),
        _good("good/ap_call_overhead"),
    ),
    "ap-launch-bound": (
        _on("gpu", ("launch_bound", "torch.compile(model)")),
        _good("gpu/reduce_overhead", "gpu/gemm_bound"),
    ),
    "cg-skip-mutation": (
        _on("gpu", ("cg_skip_mutation", "state.mul_(0.9)")),
        _good("gpu/reduce_overhead"),
    ),
    "bm-no-break-even": (_on("bad", ("bm_no_break_even", None)), _good("bad/ap_gemm_bound")),
    "bm-cold-in-timing": (
        _on("bad", ("bm_cold_in_timing", "start = time.perf_counter()")),
        _good("good/bm_cold_in_timing"),
    ),
}
HEALTHY = (
    "pointwise", "mlp_training", "two_shapes", "int_argument", "lr_scheduler", "custom_op",
    "eval_no_grad", "dynamic_shapes", "train_eval", "bf16_autocast", "submodule_only",
    "large_gemm",
)  # fmt: skip
