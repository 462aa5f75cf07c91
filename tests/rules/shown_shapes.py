"""Rules about sizes, and about what guards cost."""

from rule_scenarios import good, on

SCENARIOS = {
    "rc-param-shape": (
        on("bad", ("rc_param_shape", "@torch.compile")),
        good("good/rc_param_shape", "bad/rc_dim_specialized"),
    ),
    "rc-zero-one": (
        on("bad", ("rc_zero_one", "def forward")),
        good("good/rc_zero_one", "bad/rc_auto_dynamic"),
    ),
    "rc-dim-specialized": (
        on(
            "bad",
            ("rc_dim_specialized", "SCALES[length]"),
            ("rc_dim_specialized_branch", "if samples == 128"),
        ),
        good("good/rc_dim_specialized", "bad/rc_dynamic_false", "healthy/dynamic_shapes"),
    ),
    "rc-needless-dynamic": (
        on("bad", ("rc_needless_dynamic", "dynamic=True)")),
        good("good/rc_needless_dynamic"),
    ),
    "gd-guard-overhead": (
        on("bad", ("gd_guard_overhead", "low = max(rule.low")),
        good("good/gd_guard_overhead", "bad/ap_call_overhead", "healthy/mlp_training"),
    ),
}
