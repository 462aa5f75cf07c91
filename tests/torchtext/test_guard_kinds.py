"""Guards that torch 2.13 wrote when something other than a tensor's size changed."""

import pytest

from traceview.torchtext.guards import parse_guard

AT = "  # for t in cache:  # ork/s.py:53 in go"
AMBIENT = "  # _dynamo/output_graph.py:1122 in init_ambient_guards"
HOOKS = "torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == (1, 2)"


@pytest.mark.parametrize(
    ("text", "kind", "source", "old"),
    [
        (f"not cache{AT}", "length", "cache", "0"),
        (f"not G['SEEN']{AT}", "length", "G['SEEN']", "0"),
        (f"___tuple_iterator_len(it) == 2{AT}", "length", "it", "2"),
        (f"list(dict.keys(cfg))[0] == 'k0'{AT}", "keys", "cfg", "'k0'"),
        (f"list(self.table.keys()) == ['a', 'b']{AT}", "keys", "self.table", "['a', 'b']"),
        (f"not ___dict_contains('scale', cfg['x']){AT}", "keys", "cfg['x']", None),
        (f"___dict_contains('a, b', cfg){AT}", "keys", "cfg", None),
        (f"set.__contains__(seen, (1, 2)){AT}", "keys", "seen", None),
        (f"not hasattr(x, 'scale'){AT}", "other", None, None),
        ("Cache line invalidated because L['m'].f got deallocated", "obj_id", "m.f", None),
        ('Duplicate tensors found: ["L[\'x\']", "L[\'y\']"]', "alias", "x", None),
        (f"x is y{AT}", "alias", "x", None),
        (f"x is None{AT}", "value", "x", "None"),
        (f"x.grad is not None{AT}", "value", "x.grad", "not None"),
        (
            "GLOBAL_STATE changed: autocast(cpu)_enabled ",
            "global_state", "autocast(cpu)_enabled", None,
        ),
        (
            "GLOBAL_STATE changed: grad_mode autocast(cpu)_dtype autocast_cache_enabled ",
            "global_state", "grad_mode autocast(cpu)_dtype autocast_cache_enabled", None,
        ),
        ("___check_torch_function_mode_stack()", "global_state", "torch_function_mode_stack", None),
        (
            f"utils_device.CURRENT_DEVICE == device(type='cpu'){AMBIENT}",
            "global_state", "default_device", None,
        ),
        ("torch.autograd.forward_ad._current_level == -1", "global_state", "forward_ad", None),
        (
            "torch._functorch.pyfunctorch.compare_functorch_state([])",
            "global_state", "functorch", None,
        ),
        (HOOKS, "global_state", "saved_tensors_hooks", None),
    ],
)  # fmt: skip
def test_kinds(text, kind, source, old):
    found = parse_guard(f"0/0: {text}")
    assert (found.kind, found.source_name, found.old) == (kind, source, old)
