"""Compile time, caches and serving: which scenario shows which rule."""

from rule_scenarios import good, on

SCENARIOS = {
    "ct-repeated-blocks": (
        on("bad", ("ct_repeated_blocks", "compiled = torch.compile(model)")),
        good("good/ct_repeated_blocks"),
    ),
    "ct-cache-disabled": (
        on("bad", ("ct_cache_disabled", "force_disable_caches = True")),
        good("good/ct_cache_disabled", "bad/ct_cache_bypass"),
    ),
    "ct-cache-bypass": (
        on("bad", ("ct_cache_bypass", "post_grad_custom_post_pass = drop_zero_additions")),
        good("good/ct_cache_bypass", "bad/ct_cache_disabled"),
    ),
    "ct-cache-miss-warm": (
        on("bad", ("ct_cache_miss_warm", "logits / self.temperature")),
        good("good/ct_cache_miss_warm"),
    ),
    "ct-autotune-cost": (
        on("bad", ("ct_autotune_cost", 'mode="max-autotune-no-cudagraphs"')),
        good("good/ct_autotune_cost"),
    ),
    "ct-workers": (
        on("bad", ("ct_workers", "compile_threads = 1")),
        good("good/ct_workers"),
    ),
    "ct-repeated-same-compile": (
        on("bad", ("ct_repeated_same_compile", "torch.compiler.reset()")),
        good("good/ct_repeated_same_compile"),
    ),
    "sv-cold-requests": (
        on("bad", ("sv_cold_requests", "self.model.compile(dynamic=False)")),
        good("good/sv_cold_requests", "bad/rc_limit_hit"),
    ),
}
