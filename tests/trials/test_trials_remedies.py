"""Which remedies are tried, in which order, and how settings are pasted."""

import pytest

from traceview.rules.finding import Cost, Evidence, Finding, Location, Snippet
from traceview.trials import combinations, named, offered, swept
from traceview.trials.remedies import AS_IT_IS, NO_REMEDY, code_of
from traceview.words.ways import WAYS

DIFF = "--- train.py\n+++ train.py\n@@ -1,1 +1,1 @@\n-a = 1\n+a = 2"


def finding(rule, *remedy, ms=None, s=None, snippet=None, **more):
    return Finding(
        code="TV101",
        rule=rule,
        severity="warning",
        title=rule,
        explanation="",
        cost=Cost(ms, s),
        confidence="measured",
        location=Location("/home/me/train.py", 7),
        evidence=(Evidence("x", "runs"),),
        what_to_do="",
        snippet=snippet,
        remedy=remedy,
        **more,
    )


def test_the_most_promising_first_and_the_unknown_last():
    found = [
        finding("a", "no_grad"),
        finding("b", "dynamic=None", ms=1.0),
        finding("c", "mode=max-autotune-no-cudagraphs", ms=3.0),  # dear to compile
        finding("d", "channels_last", s=2.0),
        finding("e", "guards=skip", ms=0.5),
    ]
    remedies, spare = offered(found, "/home/me")
    assert [remedy.rules[0] for remedy in remedies] == ["b", "c", "e", "d", "a"]
    assert spare == []


def test_what_several_offer_is_tried_once():
    symptom = finding("rc-limit-hit", "dynamic=None", ms=5.0)
    cause = finding("rc-dynamic-false", "dynamic=None", s=9.0, symptoms=(symptom,))
    (remedy,), _ = offered([cause], "/home/me")
    assert remedy.rules == ("rc-dynamic-false", "rc-limit-hit")
    assert (remedy.predicted_ms, remedy.predicted_s) == (5.0, 9.0)


def test_the_whole_cost_is_what_is_expected():
    cause = finding("a", "no_grad", ms=1.0, whole_cost=Cost(4.0))
    assert offered([cause], "")[0][0].predicted_ms == 4.0


def test_settings_win_over_a_diff():
    (remedy,), _ = offered([finding("a", "no_grad", snippet=Snippet("diff", DIFF))], "/home/me")
    assert (remedy.settings, remedy.patch) == (("no_grad",), None)


@pytest.mark.parametrize(
    ("cwd", "name"),
    [("/home/me", "train.py"), ("/srv", "/home/me/train.py"), ("", "/home/me/train.py")],
)
def test_a_diff_names_a_file_that_can_be_found(cwd, name):
    (remedy,), _ = offered([finding("a", snippet=Snippet("diff", DIFF))], cwd)
    assert remedy.name == "patch train.py:7"
    assert remedy.patch.startswith(f"--- {name}\n+++ {name}\n@@ -1,1 +1,1 @@\n-a = 1\n+a = 2\n")


def test_two_patches_of_one_line_have_names_of_their_own():
    two = DIFF.replace("a = 2", "a = 3")
    found = [finding(r, snippet=Snippet("diff", text)) for r, text in (("a", DIFF), ("b", two))]
    names = [remedy.name for remedy in offered(found, "/home/me")[0]]
    assert names == ["patch train.py:7", "patch train.py:7 (2)"]


@pytest.mark.parametrize(
    "snippet", [None, Snippet("python", "x = 1"), Snippet("diff", "- a = 1\n+ a = 2")]
)
def test_no_remedy_is_said_once_a_rule(snippet):
    found = [finding("gb-x", snippet=snippet), finding("gb-x", snippet=snippet)]
    remedies, (spare,) = offered(found, "/home/me")
    assert remedies == []
    assert (spare.name, spare.rules, spare.why) == ("gb-x", ("gb-x",), NO_REMEDY)


def test_a_choice_of_rules():
    found = [finding("a", "no_grad"), finding("b", "channels_last"), finding("c")]
    remedies, spare = offered(found, "", {"b", "c"})
    assert [remedy.name for remedy in remedies] == ["channels_last"]
    assert [row.name for row in spare] == ["c"]


def test_a_sweep_is_every_combination():
    remedies = swept([], ["mode=default", "mode=max-autotune"], ["dynamic=None", "dynamic=True"])
    assert [remedy.settings for remedy in remedies][:2] == [
        ("mode=default", "dynamic=None"),
        ("mode=default", "dynamic=True"),
    ]
    assert [remedy.name for remedy in remedies][3] == "mode=max-autotune+dynamic=True"


@pytest.mark.parametrize(
    ("setting", "price"),
    [
        ("float32_matmul_precision=high", "precision"),
        ("autocast=bfloat16", "precision"),
        ("mode=reduce-overhead", "memory"),
        ("mode=max-autotune-no-cudagraphs", "compile time"),
        ("guards=skip", "unsafe"),
        ("torch._inductor.config.freezing=True", "weights"),
        ("no_grad", "gradients"),
        ("stance=default", "compile time"),
    ],
)
def test_prices(setting, price):
    (text,) = named([setting]).price
    assert price in text


def test_cudagraphs_with_autotuning_have_two_prices():
    assert len(named(["mode=max-autotune"]).price) == 2
    assert named(["dynamic=None"]).price == ()


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        (["mode=reduce-overhead", "dynamic=None"],
         ['torch.compile(..., mode="reduce-overhead", dynamic=None)']),
        (["compile=Own.pull"],
         ["Own.pull = torch.compile(Own.pull)  # or @torch.compile above its definition"]),
        (["compile=torch.special.entr"], ["entr = torch.compile(torch.special.entr)"]),
        (["torch._dynamo.config.recompile_limit=64"],
         ["torch._dynamo.config.recompile_limit = 64"]),
        (["mode=default", "guards=skip"],
         ['torch.compile(..., options={**torch._inductor.list_mode_options("default"), '
          '"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe})']),
        (["mode=None", "options.triton.cudagraphs=True"],
         ['torch.compile(..., options={"triton.cudagraphs": True})']),
        (["no_grad", "float32_matmul_precision=high"],
         ['torch.set_float32_matmul_precision("high")',
          "with torch.no_grad():  # around the compiled calls"]),
        (["sdpa=MATH"],
         ["with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):"
          "  # around the compiled calls"]),
        (["static=table/ids"],
         ["torch._dynamo.mark_static_address(table)  # once, before the first call",
          "torch._dynamo.mark_static_address(ids)  # once, before the first call"]),
        (["static=memory[]"],
         ["torch.utils._pytree.tree_map(torch._dynamo.mark_static_address, memory)"
          "  # once, before the first call"]),
        (["eager=Net.loss"], ["# Net.loss stays in eager: take its torch.compile away"]),
        (["stance=default"],
         ['torch.compiler.set_stance("default")  # in place of the stance that is set there']),
        (["torch.backends.cudnn.benchmark=True"], ["torch.backends.cudnn.benchmark = True"]),
        (["env.MALLOC_CONF=a:-1,b:$x"], ["export MALLOC_CONF='a:-1,b:$x'  # in the shell"]),
    ],
)  # fmt: skip
def test_code_to_paste(settings, lines):
    assert list(code_of(settings)) == lines


def test_every_line_of_code_is_python():
    every = [
        "mode=default", "dynamic=True", "backend=aot_eager", "fullgraph=True", "options.x=1",
        "torch._inductor.config.freezing=True", "float32_matmul_precision=high", "num_threads=2",
        "no_grad", "inference_mode", "autocast=float16", "sdpa=MATH", "channels_last",
        "guards=skip", "stance=default", "eager=step", "static=x",
        "torch.backends.mha._is_fastpath_enabled=False",
    ]  # fmt: skip
    for line in code_of(every):
        compile(f"{line}\n    pass" if line.startswith("with ") else line, "<code>", "exec")


def test_another_way_to_write_an_operator_is_code_to_paste():
    (head, *lines) = code_of(["form=aten._linalg_svd:full_matrices=False"])
    assert head == "# aten._linalg_svd:"
    assert lines == ["u, s, vh = torch.linalg.svd(x, full_matrices=False)"]
    for way in WAYS.values():
        compile(way.code, "<code>", "exec")


class TestArguments:
    """``sweep --args``: values of a script's arguments in all combinations."""

    def test_the_last_varies_fastest(self):
        assert combinations("--batch 1,8 --seq=128,512 --fp16") == [
            ("--batch", "1", "--seq=128", "--fp16"),
            ("--batch", "1", "--seq=512", "--fp16"),
            ("--batch", "8", "--seq=128", "--fp16"),
            ("--batch", "8", "--seq=512", "--fp16"),
        ]

    def test_a_value_may_have_spaces_and_repeats_once(self):
        assert combinations("'a b,c' 'a b,a b'") == [("a b", "a b"), ("c", "a b")]

    @pytest.mark.parametrize("words", ["", "--batch 1", "--batch '1,2"])
    def test_without_several_values_there_is_nothing_to_sweep(self, words):
        with pytest.raises(ValueError, match=r"."):
            combinations(words)

    def test_without_other_settings_the_script_is_measured_as_it_is(self):
        (one,) = swept([], [])
        assert (one.name, one.settings) == (AS_IT_IS, ())
