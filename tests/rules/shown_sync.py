"""Rules about waiting for a GPU, too often and too seldom: which scenario shows which."""

from rule_scenarios import good, on

SCENARIOS = {
    "ap-host-sync": (
        on("gpu", ("ap_host_sync_print", "return self.last(self.net(self.first(x)))")),
        # ap_host_sync reads each loss, too; but its GPU works 9 % of a step, and hardly ever has
        # anything left to do when the host comes to wait: that costs 0.3 % of the step.
        good(
            "gpu/ap_host_sync", "gpu/transformer_training",
            "gpu/launch_bound", "gpu/cg_skip_cpu",
        ),
    ),
    "bm-no-sync": (
        on("gpu", ("bm_no_sync", "seconds = time.perf_counter() - start")),
        good(
            "gpu/bm_no_sync_good", "gpu/gemm_bound", "gpu/tf32_off", "gpu/missed_epilogue",
            "gpu/ap_host_sync",
        ),
    ),
}  # fmt: skip
