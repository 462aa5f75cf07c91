"""Rules about cudagraphs and single kernels on a GPU: which scenario shows which."""

from rule_scenarios import good, on

SCENARIOS = {
    "cg-skip-cpu": (
        on(
            "gpu",
            ("cg_skip_cpu", "self.decay.to(x.device)"),
            ("cg_skip_cpu_unsplit", "sigma = (self.sigmas * self.sigmas)"),
        ),
        good(
            "gpu/cg_skip_cpu_good", "gpu/cg_skip_mutation", "gpu/reduce_overhead",
            "gpu/launch_bound",
        ),
    ),
    "cg-dynamic-rerecord": (
        on("gpu", ("cg_dynamic_rerecord", "y = score(")),
        good("gpu/cg_dynamic_rerecord_good", "gpu/reduce_overhead", "gpu/cudagraph_overwritten"),
    ),
    "ind-misaligned-copy": (
        on("gpu", ("misaligned_copy", "compiled(recording[i % 4096")),
        good("gpu/misaligned_copy_good", "gpu/pointwise", "gpu/transformer_training"),
    ),
    "ind-missed-epilogue": (
        on("gpu", ("missed_epilogue", "h = self.up(x)")),
        good(
            "gpu/missed_epilogue_good", "gpu/autotuned_template", "gpu/transformer_training",
            "gpu/tf32_off", "gpu/launch_bound",
        ),
    ),
    "ind-slow-kernel": (
        on("gpu", ("slow_kernel_gather", "x[self.order]")),
        good(
            "gpu/pointwise", "gpu/slow_kernel_columns", "gpu/slow_kernel_scan",
            "gpu/mem_peak_up", "gpu/missed_epilogue",
        ),
    ),
}  # fmt: skip
