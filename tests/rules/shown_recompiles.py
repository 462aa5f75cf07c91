"""Rules about what makes a function be compiled again."""

from rule_scenarios import good, on

SCENARIOS = {
    "rc-object-identity": (
        on(
            "bad",
            ("rc_object_identity", "return x + self.processor(self, x)"),
            ("rc_object_identity_functions", "error = penalty(x - target)"),
        ),
        good("good/rc_object_identity", "bad/rc_python_constant"),
    ),
    "rc-container-length": (
        on("bad", ("rc_container_length", "keys = torch.stack([*cache, new], dim=1)")),
        good("good/rc_container_length"),
    ),
    "rc-tensor-meta": (
        on("bad", ("rc_tensor_meta", "scaled = images / 255.0")),
        good("good/rc_tensor_meta", "bad/rc_dynamic_false"),
    ),
    "rc-global-state": (
        on("bad", ("rc_global_state", "return score(x, weight)")),
        good("good/rc_global_state"),
    ),
    "rc-resumed-value": (
        on("bad", ("rc_resumed_value", "if change.abs().max() < 1e-9:")),
        good("good/rc_resumed_value", "bad/rc_python_constant"),
    ),
    "rc-backend-mismatch": (
        on("bad", ("rc_backend_mismatch", "torch.compile(smooth")),
        good("good/rc_backend_mismatch"),
    ),
}
