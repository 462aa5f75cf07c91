"""Capture, custom operators, and the remaining breaks: which scenario shows which."""

from rule_scenarios import good, on

SCENARIOS = {
    "cap-nothing-captured": (
        on("bad", ("cap_nothing_captured_ddp", "torch.compile(DistributedDataParallel")),
        good("good/cap_nothing_captured", "bad/gb_fragmented"),
    ),
    "cap-bad-args": (
        on(
            "bad",
            ("cap_bad_args_mode_options", 'mode="reduce-overhead", options='),
            ("cap_bad_args_backend", "backend=backend"),
            ("cap_bad_args_option", "epilog_fusion"),
        ),
        good("good/cap_bad_args", "bad/cap_toolchain_missing"),
    ),
    "cap-toolchain-missing": (
        on("bad", ("cap_toolchain_missing", "y = model(x)")),
        good("good/cap_toolchain_missing", "bad/cap_customop_no_fake"),
    ),
    "cap-compile-crash": (
        on("bad", ("cap_compile_crash", "def balance(weight")),
        good(
            "good/cap_compile_crash",
            "bad/cap_suppressed_failure",
            "bad/gb_item",
            "bad/cap_toolchain_missing",
        ),
    ),
    "cap-customop-no-fake": (
        on(
            "bad",
            ("cap_customop_no_fake", "return median_filter(y)"),
            ("cap_customop_no_fake_library", "y = torch.ops.scenarios.clip_rows"),
        ),
        good("good/cap_customop_no_fake", "healthy/custom_op", "bad/cap_suppressed_failure"),
    ),
    "gb-dynamic-output-shape": (
        on("bad", ("gb_dynamic_output_shape", "chosen = y[keep]")),
        good("good/gb_dynamic_output_shape", "bad/gb_item"),
    ),
    "gb-unsupported-call": (
        on("bad", ("gb_unsupported_call", "phase = zlib.crc32")),
        good("good/gb_unsupported_call", "bad/gb_item", "bad/cap_nothing_captured_ddp"),
    ),
    "gb-disabled-hot": (
        on("bad", ("gb_disabled_hot", "y = polynomial(y)")),
        good("good/gb_disabled_hot", "bad/gb_unsupported_call"),
    ),
    "gb-optimizer-or-backward": (
        on("bad", ("gb_optimizer_or_backward", "loss.backward()")),
        good("good/gb_optimizer_or_backward", "healthy/lr_scheduler", "healthy/mlp_training"),
    ),
}
