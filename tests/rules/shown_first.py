"""The first rules: which scenario shows which."""

from rule_scenarios import good, on

SCENARIOS = {
    "gb-item": (
        on(
            "bad",
            ("gb_item", "peak = "),
            ("gb_item_library", "metricslib.watch(h"),
            ("gb_item_hook", 'peaks["hidden"] ='),
        ),
        good("good/gb_item"),
    ),
    "gb-data-dependent": (
        on("bad", ("gb_data_dependent", "if y.abs().max() > 3.0")),
        good("good/gb_data_dependent"),
    ),
    "gb-side-effect-io": (
        on(
            "bad",
            ("gb_side_effect_io", 'print("gated"'),
            ("gb_side_effect_io_decorated", 'print(end="")'),
        ),
        good("good/gb_side_effect_io"),
    ),
    "gb-frame-skipped": (
        on("bad", ("gb_frame_skipped", "if (y - x).abs().max()")),
        good("good/gb_frame_skipped"),
    ),
    "gb-fragmented": (
        on("bad", ("gb_fragmented", "y = record(self.name, y)")),
        good("good/gb_fragmented", "bad/gb_item"),
    ),
    "cap-nothing-compiled": (
        on(
            "bad",
            ("cap_nothing_compiled_method", "torch.compile(Generator"),
            ("cap_nothing_compiled_dropped", "torch.compile(model)"),
            ("cap_nothing_compiled_forced", "model = torch.compile(model)"),
        ),
        good("good/cap_nothing_compiled"),
    ),
    "cap-debug-backend": (
        on("bad", ("cap_debug_backend", 'backend="aot_eager")')),
        good("good/cap_debug_backend"),
    ),
    "cap-suppressed-failure": (
        on("bad", ("cap_suppressed_failure", "def forward")),
        good("good/cap_suppressed_failure"),
    ),
    "rc-dynamic-false": (
        on("bad", ("rc_dynamic_false", "dynamic=False)")),
        good("good/rc_dynamic_false"),
    ),
    "rc-limit-hit": (
        on("bad", ("rc_limit_hit", "bonus = "), ("rc_module_int_attr", "self.step += 1")),
        good("good/rc_limit_hit"),
    ),
    "rc-module-int-attr": (
        on(
            "bad",
            ("rc_module_int_attr", "self.step += 1"),
            ("rc_module_int_attr_layers", "(1 + self.depth)"),
        ),
        good("good/rc_module_int_attr"),
    ),
    "rc-python-constant": (
        on(
            "bad",
            ("rc_python_constant", "return ACTIVATIONS[kind]"),
            ("rc_python_constant_lr", "self.apply_gradients()"),
            ("rc_python_constant_temperature", "logits = "),
        ),
        good(
            "good/rc_python_constant",
            "good/rc_python_constant_lr",
            "good/rc_python_constant_temperature",
            "healthy/int_argument",
        ),
    ),
    "rc-auto-dynamic": (
        on("bad", ("rc_auto_dynamic", "def score(x)")),
        good("good/rc_auto_dynamic", "bad/rc_module_int_attr"),
    ),
    "ind-tf32-off": (on("gpu", ("tf32_off", None)), good("gpu/gemm_bound", "gpu/pointwise")),
    "ap-gemm-bound": (on("bad", ("ap_gemm_bound", None)), good("good/ap_gemm_bound")),
    "mem-peak-up": (
        on("gpu", ("mem_peak_up", "torch.compile(normalise)")),
        good("gpu/pointwise"),
    ),
    "ap-call-overhead": (
        on("bad", ("ap_call_overhead", "torch.compile(update)")),
        good("good/ap_call_overhead"),
    ),
    "ap-launch-bound": (
        on("gpu", ("launch_bound", "torch.compile(model)")),
        good("gpu/reduce_overhead", "gpu/gemm_bound"),
    ),
    "cg-skip-mutation": (
        on("gpu", ("cg_skip_mutation", "state.mul_(0.9)")),
        good("gpu/reduce_overhead"),
    ),
    "bm-no-break-even": (on("bad", ("bm_no_break_even", None)), good("bad/ap_gemm_bound")),
    "bm-cold-in-timing": (
        on("bad", ("bm_cold_in_timing", "start = time.perf_counter()")),
        good("good/bm_cold_in_timing"),
    ),
}
