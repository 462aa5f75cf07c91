"""Rules about whether there is anything to gain: which scenario shows which."""

from rule_scenarios import good, on

SCENARIOS = {
    "bm-noise": (
        on("bad", ("bm_noise", None)),
        good("gpu/pointwise", "gpu/gemm_bound", "gpu/transformer_training"),
    ),
    "ap-not-in-model": (
        on(
            "bad",
            ("ap_not_in_model", "for ids, label in loader:"),
            ("ap_not_in_model_python", "return [sum(sum(map(ord, word))"),
        ),
        good(
            "good/ap_not_in_model", "healthy/mlp_training", "healthy/lr_scheduler",
            "gpu/transformer_training",
        ),
    ),
    "ap-grad-inference": (
        on("bad", ("ap_grad_inference", "answer = model(request)")),
        good(
            "good/ap_grad_inference", "healthy/eval_no_grad", "healthy/mlp_training",
            "gpu/transformer_training", "gpu/pointwise",
        ),
    ),
    "ind-extern-dominated": (
        on(
            "bad",
            ("ind_extern_dominated", "adjusted.sort("),
            ("ind_extern_dominated_fast_path", "return self.encoder(x)"),
            ("ind_extern_dominated_complex", "turned = pairs * rotation"),
        ),
        good(
            "healthy/large_gemm", "healthy/custom_op", "bad/ap_gemm_bound",
            "gpu/transformer_training",
        ),
    ),
    "cg-output-overwritten": (
        on("gpu", ("cudagraph_overwritten", "drift += (features - previous)")),
        good("gpu/reduce_overhead", "gpu/cg_skip_mutation"),
    ),
}  # fmt: skip
