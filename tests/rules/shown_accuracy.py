"""Whether compiled outputs are those of eager (recorded with --compare-outputs)."""

from rule_scenarios import good, on

SCENARIOS = {
    "acc-low-precision": (
        on("bad", ("acc_low_precision", "score = torch.compile(")),
        good("good/acc_low_precision", "bad/acc_rng", "bad/acc_backend_bug"),
    ),
    "acc-rng": (
        on("bad", ("acc_rng", "compiled = torch.compile(model)")),
        good("good/acc_rng", "bad/acc_low_precision", "bad/acc_backend_bug"),
    ),
    "acc-backend-bug": (
        on(
            "bad",
            ("acc_backend_bug", "clean = torch.compile("),
            ("acc_backend_bug_custom_op", "@torch.compile"),
        ),
        good(
            "good/acc_backend_bug",
            "good/acc_backend_bug_custom_op",
            "bad/acc_rng",
            "bad/acc_low_precision",
        ),
    ),
}
