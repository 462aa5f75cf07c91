"""Remedies on trial in a real process: what is switched, what stays, what is compared."""

import json
from difflib import unified_diff
from importlib.util import find_spec
from pathlib import Path

import pytest
from child_runs import run_child, write_script

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs torch"),
]

SCRIPT = """
    import torch

    def tail(x):
        return x * 2

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(16, 16)

        def forward(self, x):
            y = self.linear(x).relu()
            torch._dynamo.graph_break()
            return tail(y)

    torch.manual_seed(0)
    net = Net()
    compiled = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)
    for step in range({steps}):
        loss = compiled(torch.ones(8, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def patch(script, old, new):
    before = script.read_text()
    name = str(script)
    rows = unified_diff(
        before.splitlines(True), before.replace(old, new).splitlines(True), name, name
    )
    return "".join(rows)


def tried(script, *asked, **config):
    asked = [{"name": name, "settings": settings, "patch": diff} for name, settings, diff in asked]
    config = {"mode": "trials", "trials": asked, "trial_seconds": 0.2, "blocks": None, **config}
    return run_child(script, **config)


def settings(*texts):
    return ("+".join(texts), texts, None)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remedies")
    script = write_script(folder, SCRIPT.replace("{steps}", "100000"))
    return tried(
        script,
        settings("dynamic=True"),
        ("threefold", (), patch(script, "return x * 2", "return x * 3")),
        ("whole", (), patch(script, "        torch._dynamo.graph_break()\n", "")),
        settings("fullgraph=True"),
        settings("torch._inductor.config.no_such_thing=1"),
        settings("stance=default"),
        ("loop", (), patch(script, "optimizer.zero_grad()", "net.zero_grad()")),
        settings("backend=eager", "no_grad"),
        settings("eager=Net"),
    )


def trial(run, name):
    (found,) = [event for event in run.of("trial") if event["name"] == name]
    return found


def test_every_trial_has_one_end(run):
    states = {event["name"]: event["state"] for event in run.of("trial")}
    assert states == {
        "dynamic=True": "measured",
        "threefold": "measured",
        "whole": "measured",
        "fullgraph=True": "failed",
        "torch._inductor.config.no_such_thing=1": "not_applicable",
        "stance=default": "not_applicable",
        "loop": "not_applicable",
        "backend=eager+no_grad": "failed",
    }
    assert run.returncode == 1  # no_grad is the script's end: loss.backward() has nothing to do
    assert "graph_break" in trial(run, "fullgraph=True")["why"].replace(
        "Unsupported", "graph_break"
    )
    assert "no setting torch._inductor.config.no_such" in str(
        trial(run, "torch._inductor.config.no_such_thing=1")["why"]
    )
    assert "no stance" in trial(run, "stance=default")["why"]
    assert "has run already" in trial(run, "loop")["why"]
    assert "does not require grad" in trial(run, "backend=eager+no_grad")["why"]


def test_the_scripts_stance_is_put_aside_and_back_again(tmp_path):
    script = write_script(
        tmp_path,
        """
        import torch
        compiled = torch.compile(lambda x: x.sin() + 1, backend="eager")
        compiled(torch.ones(2))
        torch.compiler.set_stance("eager_on_recompile")
        for _ in range(100000):
            compiled(torch.ones(3))
        """,
    )
    run = tried(script, settings("stance=default"))
    (tested,) = run.of("trial")
    assert (tested["state"], tested["compiles"]) == ("measured", 1), run.err
    assert [event["stance"] for event in run.of("stance")] == ["eager_on_recompile"]
    usual = [block for block in run.of("block") if block["stance"] == "compiled"]
    assert usual
    assert not any(block["compiles_inside"] for block in usual)


def test_blocks_alternate_and_name_their_trial(run):
    for name in ("dynamic=True", "threefold", "whole"):
        blocks = [block for block in run.of("block") if block.get("trial") == name]
        pairs = {block["pair_index"] for block in blocks}
        stances = sorted((block["pair_index"], block["stance"]) for block in blocks)
        both = sorted((pair, stance) for pair in pairs for stance in ("compiled", "trial"))
        assert stances == both
        assert len(pairs) >= 2
        assert all(block["clock"] == "host" and block["duration_ms"] > 0 for block in blocks)


def test_what_was_compiled_before_stays(run):
    """Nothing is compiled again in the stance that the script has by itself."""
    usual = [block for block in run.of("block") if block["stance"] == "compiled"]
    assert usual
    assert not any(block["compiles_inside"] for block in usual)
    rows = [row for event, row in run.rows("steps") if event["stance"] == "compiled"]
    later = [row for row in rows if row[0] > trial(run, "dynamic=True")["step"]]
    assert not any(compiles for *_, compiles in later)


def test_a_trial_is_compiled_by_itself(run):
    dynamic, whole = trial(run, "dynamic=True"), trial(run, "whole")
    assert dynamic["graphs"] == 2
    assert dynamic["compile_s"] > 0
    assert whole["graphs"] == 1
    assert whole["graph_breaks"] == 0


def test_outputs_and_gradients_are_compared(run):
    checks = run.of("output_check")
    named = {name: {} for name in ("dynamic=True", "threefold", "whole")}
    for check in checks:
        if check["run"] == "trial":
            named[check["trial"]][check["output"]] = check["same"]
    usual = {check["output"]: check["same"] for check in checks if check["run"] == "compiled"}
    outputs = {"output", "gradient of weight linear.weight", "gradient of weight linear.bias"}
    assert usual == named["dynamic=True"] == named["whole"] == dict.fromkeys(outputs, True)
    assert named["threefold"] == dict.fromkeys(outputs, False)


def test_calls_are_replayed_where_the_script_ends_early(tmp_path):
    script = write_script(
        tmp_path,
        """
        import torch

        @torch.compile
        def f(x):
            return (x.sin() + 1).sum()

        for _ in range(12):
            value = f(torch.ones(64))
        print(value)
        """,
    )
    run = tried(script, settings("dynamic=True"), settings("eager=f"))
    assert run.out == "tensor(117.8541)\n"
    # It is begun again then, and finds in its caches what it has compiled.
    assert [event["name"] for event in run.of("trial_begin")].count("dynamic=True") == 2
    compiled_ms = run.of("compile")[1]["duration_ms"]
    assert compiled_ms == pytest.approx(1e3 * run.of("trial")[0]["compile_s"])
    assert [event["state"] for event in run.of("trial")] == ["measured", "measured"]
    blocks = [block for block in run.of("block") if block.get("trial")]
    assert blocks
    assert all(block["replayed"] for block in blocks)
    checked = {check["trial"] for check in run.of("output_check") if check["run"] == "trial"}
    assert checked == {"dynamic=True", "eager=f"}


def test_modules_that_compile_themselves(tmp_path):
    script = write_script(
        tmp_path,
        """
        import torch

        class Block(torch.nn.Linear):
            def forward(self, x):
                return torch.nn.functional.linear(x, self.weight, self.bias).relu()

        net = torch.nn.Sequential(Block(8, 8), torch.nn.ReLU(), Block(8, 8)).eval()
        for block in (net[0], net[2]):
            block.compile()
        with torch.no_grad():
            for _ in range(100000):
                net(torch.ones(4, 8))
        """,
    )
    run = tried(script, settings("eager=Block"), settings("dynamic=True"))
    first, second = run.of("trial")
    assert (first["state"], first["graphs"]) == ("measured", 0)
    assert second["state"] == "measured"
    assert second["graphs"] >= 1


@pytest.mark.parametrize("compiled", ["net = torch.compile(net)", "net.compile()"])
def test_blocks_in_place_of_the_whole(tmp_path, compiled):
    script = write_script(
        tmp_path,
        f"""
        import torch

        class Block(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x).relu()

        net = torch.nn.Sequential(*(Block(8, 8) for _ in range(3)), torch.nn.Tanh())
        {compiled}
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)
        for _ in range(100000):
            net(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        """,
    )
    run = tried(script, settings("blocks=Block"), settings("blocks=Lock"))
    whole, none = run.of("trial")
    assert (whole["state"], whole["graphs"]) == ("measured", 2), "only the first has no gradient"
    assert (none["state"], none["why"]) == ("not_applicable", "no compiled module holds a Lock")
    own = [block for block in run.of("block") if block["stance"] == "compiled"]
    assert not any(block["compiles_inside"] for block in own)
    checks = [check["same"] for check in run.of("output_check") if check["run"] == "trial"]
    assert len(checks) == 7  # the output, and gradients of three weights and three biases
    assert all(checks)


def test_eager_is_a_baseline_too(tmp_path):
    script = write_script(tmp_path, SCRIPT.replace("{steps}", "100000"))
    run = tried(script, settings("backend=aot_eager"), trial_baseline="eager")
    stances = {block["stance"] for block in run.of("block")}
    assert stances == {"eager", "trial"}
    assert trial(run, "backend=aot_eager")["state"] == "measured"


IN_FORCE = {
    "mode=max-autotune-no-cudagraphs": "mode",
    "options.max_fusion_size=7": "options",
    "dynamic=True": "symbolic",
    "torch.compiler.config.dynamic_sources=L['x']": "symbolic",
    "torch._dynamo.config.recompile_limit=77": "limit",
    "torch._dynamo.config.capture_scalar_outputs=True": "scalars",
    "torch._functorch.config.activation_memory_budget=0.5": "budget",
    "float32_matmul_precision=medium": "precision",
    "num_threads=3": "threads",
    "deterministic_debug_mode=default": "deterministic",
    "detect_anomaly=False": "anomaly",
    "torch.backends.mkldnn.enabled=False": "mkldnn",
    "autocast=bfloat16": "autocast",
    "inference_mode": "inference",
    "no_grad": "grad",
    "sdpa=MATH": "sdpa",
    "channels_last": "strides",
}


def test_each_setting_is_in_force_where_its_trial_compiles_and_nowhere_else(tmp_path):
    script = write_script(
        tmp_path,
        """
        import json
        import torch
        from torch._functorch import config as functorch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Conv2d(4, 4, 3)

            def forward(self, x):
                return self.conv(x).relu()

        def probe(graph, inputs, **how):
            sizes = [n.meta["example_value"].shape for n in graph.graph.nodes
                     if n.op == "placeholder" and hasattr(n.meta.get("example_value"), "shape")]
            facts = {
                "mode": how.get("mode"),
                "options": "max_fusion_size" in str(how.get("options")),
                "symbolic": any(type(s) is torch.SymInt for size in sizes for s in size),
                "limit": torch._dynamo.config.recompile_limit,
                "scalars": torch._dynamo.config.capture_scalar_outputs,
                "budget": functorch.activation_memory_budget,
                "precision": torch.get_float32_matmul_precision(),
                "threads": torch.get_num_threads(),
                "deterministic": torch.get_deterministic_debug_mode(),
                "anomaly": torch.is_anomaly_enabled(),
                "mkldnn": torch.backends.mkldnn.enabled,
                "autocast": torch.is_autocast_enabled("cpu"),
                "grad": torch.is_grad_enabled(),
                "sdpa": torch.backends.cuda.flash_sdp_enabled(),
                "strides": [t.stride() for t in inputs if getattr(t, "ndim", 0) == 4],
            }

            def call(*args):
                if facts:
                    facts["inference"] = torch.is_inference_mode_enabled()
                    print(json.dumps(facts), flush=True)
                    facts.clear()
                return graph.forward(*args)

            return call

        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.autograd.set_detect_anomaly(True)
        net = torch.compile(Net(), backend=probe)
        x = torch.ones(2, 4, 8, 8)
        for _ in range(200000):
            net(x)
        """,
    )
    run = tried(script, *map(settings, IN_FORCE), trial_seconds=0.05)
    usual, *facts = [json.loads(line) for line in run.out.splitlines()]
    states = {event["name"]: event["state"] for event in run.of("trial")}
    assert states == dict.fromkeys(IN_FORCE, "measured")
    changed = dict(zip(IN_FORCE, facts, strict=False))
    for name, fact in IN_FORCE.items():
        apart = {key for key, value in changed[name].items() if value != usual[key]}
        assert apart == {fact} | ({"grad"} if fact == "inference" else set()), name


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """More trials than torch's limit of variants, of a function whose code can't be copied."""
    folder = tmp_path_factory.mktemp("swept")
    script = write_script(
        folder,
        """
        import torch

        net = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval())
        with torch.no_grad():
            for _ in range(12):
                value = net(torch.ones(4, 8))
        """,
    )
    caches, debug = folder / "run" / "caches", folder / "run" / "debug"
    run = tried(
        script,
        settings("torch._inductor.config.max_fusion_size=60"),
        *(settings("backend=eager", f"torch._dynamo.config.verbose={n}") for n in range(4)),
        settings("torch._inductor.config.max_fusion_size=61"),
        trial_baseline="eager",
        trial_caches=str(caches),
        trial_debug=str(debug),
    )
    return run, caches, debug


def test_each_compiles_with_empty_caches_and_then_with_its_own(swept):
    run, caches, _ = swept
    ends = run.of("trial")
    assert [event["state"] for event in ends] == ["measured"] * 6
    for event in (ends[0], ends[-1]):
        assert (event["compiles"], event["warm_compiles"]) == (1, 1)
        assert 0 < event["warm_compile_s"] < event["compile_s"] / 2
    assert {path.parent.name[-2:] for path in caches.glob("*/fxgraph")} == {"60", "61"}


def test_variants_of_torchs_own_functions_are_not_counted_against_the_limit(swept):
    """Two for each trial, which is more than torch's eight: none of them ran in eager instead."""
    ends = swept[0].of("trial")
    assert [event["graphs"] for event in ends] == [1] * 6
    assert [event["compiles"] for event in ends] == [event["warm_compiles"] for event in ends]


def test_debug_folders_are_told_apart(swept):
    run, _, debug = swept
    first = run.of("trial")[0]
    assert first["debug"].startswith(str(debug))
    assert "max_fusion_size" in first["debug"]
    assert list(Path(first["debug"]).rglob("output_code.py"))


def test_what_is_replayed_till_the_time_is_up_counts(tmp_path):
    script = write_script(
        tmp_path,
        """
        import torch

        @torch.compile(backend="eager")
        def f(x):
            return (x.sin() + 1).sum()

        for _ in range(6):
            value = f(torch.ones(64))
        """,
    )
    run = tried(
        script, settings("dynamic=True"), trial_seconds=1000.0, steps=1, blocks=10**6, timeout_s=5
    )
    assert trial(run, "dynamic=True")["state"] == "measured"
    assert len({block["pair_index"] for block in run.of("block") if block.get("trial")}) >= 5


ALSO = """
    import torch

    def pull(weights, grads, rate):
        for w, g in zip(weights, grads):
            w.sub_(rate * g / (g.norm() + 1e-3)).clamp_(-1, 1)

    class Sizes:
        def __init__(self, norm):
            self.norm = norm

    def sizes(weights):
        return Sizes(torch.stack([w.norm() for w in weights]))

    def unused(x):
        return x + 1

    def parts(x):
        yield x

    def train(x):
        loss = compiled(x).square().mean()
        loss.backward()
        with torch.no_grad():
            pull(list(net.parameters()), [p.grad for p in net.parameters()], 1e-9)
            sizes(list(net.parameters()))
        net.zero_grad()

    torch.manual_seed(0)
    net = torch.nn.Linear(16, 16)
    compiled = torch.compile(net)
    for step in range(100000):
        train(torch.ones(8, 16))
"""


def test_a_function_outside_is_compiled_as_well(tmp_path):
    """And compared by itself; none that calls what the script compiles, or is not called."""
    names = ("pull", "sizes", "unused", "parts", "train", "nothing")
    run = tried(write_script(tmp_path, ALSO), *(settings(f"compile={name}") for name in names))
    assert run.returncode == 0
    found = {name: trial(run, f"compile={name}") for name in names}
    whys = {name: (event["state"], event["why"]) for name, event in found.items()}
    assert whys == {
        "pull": ("measured", None),
        "sizes": ("measured", None),
        "unused": ("not_applicable", "unused() is not called in the steps"),
        "parts": ("not_applicable", "parts() returns before it has run"),
        "train": ("not_applicable", "train() calls what the script compiles"),
        "nothing": ("not_applicable", "no function of Python's is named nothing"),
    }
    assert found["pull"]["compiles"] > found["unused"]["compiles"]
    checks = [event for event in run.of("output_check") if event.get("function")]
    compared = {event["output"] for event in checks}
    assert {"argument weights[0] (written) of pull()", "output.norm of sizes()"} <= compared
    assert all(event["same"] for event in checks)
