"""Lines of the user's own that name a setting of torch's."""

import pytest

from traceview.derive.user_sources import setting_sites
from traceview.tables import Tables, from_rows

FILE = "/u/train.py"
NAMES = (
    ("env", "TORCHINDUCTOR_CACHE_DIR"),
    ("inductor_config", "cpp.threads"),
    ("inductor_config", "freezing"),
    ("compiler_config", "force_disable_caches"),
    ("precision", "float32_matmul_precision"),
    ("precision", "cudnn.benchmark"),
    ("precision", "cudnn.enabled"),
    ("torch", "dispatch_modes"),
)


def sites(source):
    settings = [{"pass": "cold", "section": s, "name": n, "value": "Counter"} for s, n in NAMES]
    tables = Tables(
        {
            "environment": from_rows("environment", settings),
            "sources": from_rows("sources", [{"pass": "cold", "file": FILE}]),
        }
    )
    found = setting_sites(tables, {FILE: source}.get)
    return [(row["name"], row["line"], row["function"]) for row in found.to_dicts()]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("inductor.force_disable_caches = True", [("force_disable_caches", 1, "<module>")]),
        ("def f():\n  config.freezing = True", [("freezing", 2, "f")]),
        ("inductor.cpp.threads = a.b = 1", [("cpp.threads", 1, "<module>")]),
        ("a.b = config.cpp.threads = 1", [("cpp.threads", 1, "<module>")]),
        ("torch.compile(f, options={'cpp.threads': 1})", [("cpp.threads", 1, "<module>")]),
        ("def f():\n  x.to(torch.half)", [("float16", 2, "f")]),
        ("model.half()", [("float16", 1, "<module>")]),
        ("y = x.bfloat16()", [("bfloat16", 1, "<module>")]),
        ("torch.float32, np.float16, self.half, half(x), model.half(x)", []),
        ("self.threads = 1", []),
        ("pool.threads = 1", []),
        ("self.freezing = True", []),
        ("def f():\n  torch.backends.cudnn.benchmark = True", [("cudnn.benchmark", 2, "f")]),
        ("pl.Trainer(max_epochs=2, benchmark=True)", [("cudnn.benchmark", 1, "<module>")]),
        ("self.benchmark = True", []),
        ("torch.backends.cudnn.enabled = False", [("cudnn.enabled", 1, "<module>")]),
        ("with cudnn.flags(enabled=False): pass", [("cudnn.enabled", 1, "<module>")]),
        ("with mkldnn.flags(enabled=False): pass\nself.enabled = False", []),
        ("run(benchmark=True)", []),
        ("with config.patch(force_disable_caches=True): pass",
         [("force_disable_caches", 1, "<module>")]),
        ("patch({'torch._inductor.config.force_disable_caches': 1})",
         [("force_disable_caches", 1, "<module>")]),
        ("os.environ['TORCHINDUCTOR_CACHE_DIR'] = d", [("TORCHINDUCTOR_CACHE_DIR", 1, "<module>")]),
        ("torch.autograd.set_detect_anomaly(True)",
         [("autograd.detect_anomaly", 1, "<module>")]),
        ("with detect_anomaly(): pass", [("autograd.detect_anomaly", 1, "<module>")]),
        ("use_deterministic_algorithms(True)", [("deterministic_algorithms", 1, "<module>")]),
        ("torch.is_anomaly_enabled()", []),
        ("torch.backends.cuda.enable_flash_sdp(False)", [("cuda.flash_sdp", 1, "<module>")]),
        ("enable_cudnn_sdp(enabled=fused)", [("cuda.cudnn_sdp", 1, "<module>")]),
        ("enable_flash_sdp(True); enable_flash_sdp(enabled=True); enable_sdp(False)", []),
        ("def f():\n  with sdpa_kernel([SDPBackend.MATH]): pass", [("sdpa_kernel", 2, "f")]),
        ("with sdpa_kernel(SDPBackend.MATH): pass", [("sdpa_kernel", 1, "<module>")]),
        ("with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]): pass", []),
        ("with sdpa_kernel(backends), sdpa_kernel(): pass", []),
        ("with sdp_kernel(enable_flash=False, enable_mem_efficient=False): pass",
         [("sdpa_kernel", 1, "<module>")]),
        ("with sdp_kernel(enable_flash=False): pass", []),
        ("with torch.no_grad(), Counter(): pass", [("Counter", 1, "<module>")]),
        ("def f(self):\n  self.c = flops.Counter()\n  with self.c as c: pass",
         [("Counter", 3, "f")]),
        ("c = Counter()\nwith other: pass", []),
        ("# force_disable_caches = True", []),
        ("force_disable_caches", []),
        ("set('float32_matmul_precision')", []),
        ("x = (", []),
    ],
)  # fmt: skip
def test_what_names_a_setting(source, found):
    assert sites(source) == found


def test_they_come_in_the_order_of_the_source():
    source = "a.force_disable_caches = 1\n\ndef f():\n    a.force_disable_caches = 0\n"
    assert [line for _, line, _ in sites(source)] == [1, 4]


@pytest.mark.parametrize("terms", [500, 3000, 100_000])
def test_an_expression_deeper_than_pythons_stack(terms):
    last = [("force_disable_caches", 2, "<module>")]
    found = sites("x = " + " + ".join(["1"] * terms) + "\nc.force_disable_caches = 1")
    assert found in (last, []), "the parser itself may give up"
