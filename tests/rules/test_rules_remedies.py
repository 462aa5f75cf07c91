"""Remedies that can be tried: on recorded runs, findings offer the setting that their advice is."""

import pytest
from recordings import diagnosis_of

from traceview.diagnosis.tree import everyone

REMEDIES = {
    "bad-ap_grad_inference": ("ap-grad-inference", ("no_grad",)),
    "bad-cap_debug_backend": ("cap-debug-backend", ("backend=inductor",)),
    "bad-gb_item": ("gb-item", ("torch._dynamo.config.capture_scalar_outputs=True",)),
    "bad-gd_guard_overhead": ("gd-guard-overhead", ()),  # on plain values: no setting helps
    "gpu-launch_bound": ("ap-launch-bound", ("mode=reduce-overhead",)),
    "bad-rc_container_length": ("rc-limit-hit", ("torch._dynamo.config.recompile_limit=64",)),
    "bad-rc_limit_hit": ("rc-limit-hit", ("eager=weigh",)),  # a new name in every call
    "bad-rc_python_constant_lr": (
        "rc-limit-hit",
        (),
    ),  # none comes back, and other code is compiled
    "bad-ind_random_numbers": (
        "ind-random-numbers",
        ("torch._inductor.config.fallback_random=True",),
    ),
    "bad-ind_weight_layout": (
        "ind-weight-layout",
        ("torch._inductor.config.freezing=True", "no_grad"),
    ),
    "bad-rc_dynamic_false": ("rc-dynamic-false", ("dynamic=None",)),
    "bad-rc_module_int_attr": (
        "rc-module-int-attr",
        ("torch._dynamo.config.allow_unspec_int_on_nn_module=True",),
    ),
    "bad-rc_needless_dynamic": ("rc-needless-dynamic", ("dynamic=None",)),
    "bad-rc_param_shape": (
        "rc-param-shape",
        ("torch._dynamo.config.force_parameter_static_shapes=False",),
    ),
}


@pytest.mark.parametrize("name", REMEDIES)
def test_the_finding_offers_its_setting(name):
    rule, remedy = REMEDIES[name]
    offers = {one.remedy for one in everyone(diagnosis_of(name).findings) if one.rule == rule}
    assert offers == {remedy}
