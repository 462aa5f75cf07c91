"""What a trial switches: the grammar of settings."""

import pytest

from traceview.collectors.child.settings import Setting, parse


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        (
            "mode=max-autotune-no-cudagraphs",
            Setting("compile", "mode", "max-autotune-no-cudagraphs"),
        ),
        ("dynamic=None", Setting("compile", "dynamic", None)),
        ("fullgraph=True", Setting("compile", "fullgraph", True)),
        (" dynamic = False ", Setting("compile", "dynamic", False)),
        ("options.triton.cudagraphs=False", Setting("option", "triton.cudagraphs", False)),
        (
            "torch._inductor.config.triton.cudagraphs=True",
            Setting("config", "triton.cudagraphs", True, "torch._inductor.config"),
        ),
        (
            "torch._dynamo.config.recompile_limit=64",
            Setting("config", "recompile_limit", 64, "torch._dynamo.config"),
        ),
        (
            "torch.backends.cudnn.benchmark=True",
            Setting("attribute", "benchmark", True, "torch.backends.cudnn"),
        ),
        ("float32_matmul_precision=high", Setting("process", "float32_matmul_precision", "high")),
        ("detect_anomaly=False", Setting("process", "detect_anomaly", False)),
        (
            "deterministic_debug_mode=default",
            Setting("process", "deterministic_debug_mode", "default"),
        ),
        ("no_grad", Setting("around", "no_grad")),
        ("autocast=bfloat16", Setting("around", "autocast", "bfloat16")),
        ("guards=skip", Setting("guards", "guards", "skip")),
        ("stance=default", Setting("stance", "stance", "default")),
        ("env.OMP_NUM_THREADS=2", Setting("env", "OMP_NUM_THREADS", "2")),
        ("eager=Net.forward", Setting("eager", "Net.forward")),
        ("blocks=Block", Setting("blocks", "Block")),
        ("compile=Sgd.update", Setting("function", "Sgd.update")),
        ("static=table/ids", Setting("static", "static", ("table", "ids"))),
        ("pad=ids:1:64/32/64", Setting("pad", "ids", (1, (32, 64)))),
    ],
)
def test_settings(text, setting):
    assert parse(text) == setting


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "NAME=VALUE"),
        ("=True", "NAME=VALUE"),
        ("os.system('x')", "NAME=VALUE"),
        ("speed=11", "can be tried"),
        ("torch._dynamo.configs.x=1", "can be tried"),
        ("torch.cuda.set_device=1", "can be tried"),
        ("guards=drop", "can be tried"),
        ("stance=force_eager", "can be tried"),
        ("compile=f()", "can be tried"),
        ("static=table,ids", "can be tried"),
        ("pad=ids:1", "can be tried"),
        ("pad=ids:-1:32", "can be tried"),
        ("pad=ids:1:32,64", "can be tried"),
        ("mode", "takes a value"),
        ("no_grad=True", "takes no value"),
        ("autocast", "takes a value"),
    ],
)
def test_what_is_no_setting(text, said):
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_a_value_is_read_and_never_run():
    assert parse("mode=__import__('os').getcwd()").value == "__import__('os').getcwd()"
