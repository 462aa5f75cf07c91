"""ticket.md: the form's parts in order, what trials show, its length; it is safe to paste."""

import json
import re

import msgspec
import pytest
from cli_runs import Cli
from recordings import diagnosis_of, unpack

from traceview.diagnosis.model import CompileRow
from traceview.ticket import bundle
from traceview.ticket.form import TRACKERS, Facts, first_failing, render, signature
from traceview.ticket.reproducer import DIFFERENCE, Reproducer
from traceview.torchtext.stages import STAGES
from traceview.trials import Results, Trial

TAGS = {"<details>", "</details>", "<summary>", "</summary>"}
HOSTILE = (
    "</details><script>x</script> @octocat ![a](https://b.c/d) | # 1 #12 GH-7 ```\n~~~ <!-- [l](x)"
)


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return unpack("bad-cap_compile_crash", tmp_path_factory.mktemp("crash"))


@pytest.fixture
def page(cli, run, tmp_path):
    cli("ticket", "--no-run-env", "-o", tmp_path, run)
    assert cli.code in (0, None)
    return (tmp_path / "ticket.md").read_text(encoding="utf-8")


@pytest.fixture
def facts():
    return Facts(
        diagnosis_of("bad-cap_compile_crash"), None, "pytorch", "standard", ["train.py"], []
    )


def trial(settings, verdict="no_gain", **known):
    """One trial of which nothing is recorded but these."""
    empty = dict.fromkeys(Trial.__struct_fields__)
    lists = dict.fromkeys(("rules", "price", "arguments", "notes"), ())
    some = {"name": settings, "settings": (settings,), "verdict": verdict, "pairs": 3}
    return msgspec.convert({**empty, **lists, "apart": False, **some, **known}, Trial)


def ladder(**verdicts):
    trials = tuple(trial(f"backend={stage}", verdict) for stage, verdict in verdicts.items())
    return Results(
        target="train.py", created=None, traceview="", baseline="eager", budget_seconds=1.0,
        environment={}, trials=trials, recommended=None, not_tried=(),
    )  # fmt: skip


def without_code(text):
    text = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.M | re.S)
    return re.sub(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text)


def test_the_parts_of_the_form_in_its_order(page):
    heads = [line for line in page.split("\n") if line.startswith("### ")]
    assert heads == ["### 🐛 Describe the bug", "### Error logs", "### Versions"]
    own, tool = page.index("in your own words"), page.index("a tool wrote this")
    assert own < tool < page.index("The script raised InductorError")
    errors = page[page.index("### Error logs") : page.index("### Versions")]
    assert "Traceback (most recent call last):" in errors
    assert "torch._inductor.exc.InductorError: KeyError: 'buf9'" in errors
    assert "| torch version | 2.13.0+cpu |" in page[page.index("### Versions") :]
    assert "from torch._dynamo.repro.after_aot import run_repro" in page
    assert "https://github.com/pytorch/pytorch/issues?q=is%3Aissue+%22InductorError%22" in page


def test_nothing_is_said_of_what_was_not_run(page):
    assert len(re.findall(r"^\| `backend=.* \| not run \|$", page, re.M)) == len(STAGES)
    assert "Suggested label" not in page
    assert "collect_env was not run" in page


@pytest.mark.parametrize(
    ("verdicts", "stage", "label"),
    [
        (("failed", "failed", "failed", "failed"), "eager", "module: dynamo"),
        (("slower", "changes_results", "failed", "failed"), "aot_eager", "module: pt2-dispatcher"),
        (("slower", "no_gain", "no_gain", "failed"), "inductor", "module: inductor"),
        (("slower", "no_gain", "no_gain", "accepted"), None, None),
    ],
)
def test_the_label_is_that_of_the_first_backend_that_fails(facts, verdicts, stage, label):
    facts.results = ladder(**dict(zip(STAGES, verdicts, strict=True)))
    assert first_failing(facts.results) == stage
    assert (f"Suggested label: `{label}`" in render(facts)) == (label is not None)
    facts.form = "generic"
    assert "Suggested label" not in render(facts)


def test_a_script_that_fails_may_have_been_run_with_each_backend(facts):
    facts.ladder = {"eager": "runs", "aot_eager": "fails in another way: KeyError: 'a|b'"}
    page = render(facts)
    assert page.count("| not run |") == 2
    assert r"| fails in another way: KeyError: 'a\|b' |" in page
    assert "Suggested label" not in page
    facts.ladder |= {"aot_eager_decomp_partition": "runs", "inductor": "fails"}
    page = render(facts)
    assert "Suggested label: `module: inductor`" in page
    assert "not run |" not in page
    assert "`traceview sweep` can't" not in page


def test_a_ladder_with_a_gap_names_no_backend(facts):
    facts.results = ladder(eager="slower", inductor="failed")
    assert first_failing(facts.results) is None
    assert first_failing(None) is None
    assert render(facts).count("not run |") == 2


def test_the_commands_that_fill_the_table():
    slow = diagnosis_of("bad-gb_item")
    text = render(Facts(slow, None, "pytorch", "standard", ["-m", "pkg.train"], [], ranks=2))
    assert "traceview sweep --backends ladder -m pkg.train" in text
    assert "traceview sweep --modes default,reduce-overhead,max-autotune" in text
    assert "torchrun --nproc-per-node 2 -m pkg.train" in text
    assert "No error." in text


def test_commands_show_whether_the_newest_torch_has_the_fault(facts):
    page = render(facts)
    assert "It ran with torch 2.13.0+cpu only" in page
    assert "\ntraceview diagnose --python newest/bin/python train.py\n" in page
    facts.reproducer = Reproducer("minified", DIFFERENCE, text="import torch", shown=3, times=3)
    page = render(facts)
    assert "\nnewest/bin/pip install torch\nnewest/bin/python reproducer.py\n" in page
    assert "diagnose --python" not in page


def test_the_signature_has_words_of_torch_only(facts):
    facts.error = (
        "x\nValueError: bad\n\ntorch._inductor.exc.InductorError: LoweringException: in '/a/b' at 3"
    )
    assert signature(facts) == '"InductorError" LoweringException: in at'
    facts.error, facts.diagnosis = "", diagnosis_of("bad-gb_item")
    assert signature(facts).startswith("Unsupported Tensor.item")


def test_long_parts_are_shortened_and_say_where_the_rest_is(facts):
    facts.results = Results(
        **{name: getattr(ladder(), name) for name in Results.__struct_fields__ if name != "trials"},
        trials=tuple(trial(f"x.y_{n}=1", "failed", why=HOSTILE * 20) for n in range(90)),
    )
    facts.error = "Traceback (most recent call last):\n" + "`é|@a #1\n" * 40_000
    facts.versions = "line ``` </details>\n" * 40_000
    facts.reproducer = Reproducer(
        "graph",
        DIFFERENCE,
        text=facts.versions,
        shown=3,
        times=3,
        passed_over=[("script", HOSTILE)] * 5,
    )
    facts.left_out = [(f"raw/{HOSTILE}/{n}", HOSTILE) for n in range(500)]
    facts.replaced = [(f"kind {n}", 3, 2) for n in range(40)]
    text = render(facts)
    assert len(text) < 65_536
    for name in ("stderr.txt", "collect_env.txt", "reproducer.py"):
        assert f"{name}" in text
    assert text.count("more characters)") >= 2


def test_markup_in_what_was_recorded_is_text(facts):
    row = msgspec.structs.replace(facts.diagnosis.compiles[0], reason=HOSTILE)
    assert isinstance(row, CompileRow)
    target = f"{HOSTILE}.py"
    facts.diagnosis = msgspec.structs.replace(facts.diagnosis, compiles=(row,), target=target)
    facts.command, facts.left_out = [target], [(HOSTILE, HOSTILE)]
    facts.reproducer = Reproducer(
        "script",
        DIFFERENCE,
        text=HOSTILE,
        times=1,
        printed=HOSTILE,
        passed_over=[("graph", HOSTILE)],
    )
    facts.results = ladder(eager="failed")
    facts.results = msgspec.structs.replace(
        facts.results, trials=(trial("backend=eager", "failed", why=HOSTILE),)
    )
    text = without_code(render(facts))
    address = re.search(r"<https://github\.com/pytorch/pytorch/issues\?q=[\w%+.]*>", text)
    text = text.replace(address[0], "")
    assert set(re.findall(r"</?[a-z!][^>\n]*>?", text)) <= TAGS
    assert text.count("<details>") == text.count("</details>")
    assert re.search(r"@octocat|(?<!\\)!\[|#\d|GH-\d|(?<!\\)<!--", text) is None
    widths = {}
    for line in text.split("\n"):
        if line.startswith("|"):
            widths.setdefault(line.count("|") - line.count("\\|"), []).append(line)
    assert all(width > 2 for width in widths)


def _interpreter(tmp_path, body):
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_versions_are_what_the_run_s_interpreter_prints(run, tmp_path, monkeypatch):
    opened = bundle.Run.open(run)
    opened.manifest.python = _interpreter(tmp_path, 'echo "PyTorch version: 9 $1 $2"')
    collect_env = "torch.utils.collect_env"
    text = f"PyTorch version: 9 -m {collect_env}"
    assert bundle.collected_versions(opened, "pytorch") == (collect_env, text)
    opened.manifest.python = _interpreter(tmp_path, "echo PyTorch; exit 1")
    assert bundle.collected_versions(opened, "pytorch") is None
    opened.manifest.python = _interpreter(tmp_path, "exec sleep 30")
    monkeypatch.setattr(bundle, "_ENV_SECONDS", 0.2)
    assert bundle.collected_versions(opened, "pytorch") is None
    for other in (str(tmp_path / "gone"), "", "python", "/bin/sh"):
        opened.manifest.python = other
        assert bundle.collected_versions(opened, "pytorch") is None


def test_an_interpreter_in_the_run_folder_is_not_run(tmp_path):
    opened = bundle.Run.open(unpack("bad-cap_bad_args_backend", tmp_path))
    opened.manifest.python = _interpreter(opened.folder, "echo ran")
    assert bundle.collected_versions(opened, "pytorch") is None
    (tmp_path / "python").symlink_to(opened.manifest.python)
    opened.manifest.python = str(tmp_path / "python")
    assert bundle.collected_versions(opened, "pytorch") is None


def test_an_interpreter_that_a_folder_names_is_not_started_unasked(cli, tmp_path):
    run = unpack("bad-cap_bad_args_mode_options", tmp_path)
    started = tmp_path / "started"
    manifest = json.loads((run / "run.json").read_text())
    manifest["python"] = _interpreter(tmp_path, f"touch {started}")
    (run / "run.json").write_text(json.dumps(manifest))
    for options, ran in (((), False), (("--run-env",), True)):
        cli("ticket", *options, "-o", tmp_path / "out", run)
        assert (cli.code in (0, None), started.exists()) == (True, ran)


def test_a_form_asks_its_own_project_first_what_is_installed(run, tmp_path):
    opened = bundle.Run.open(run)
    opened.manifest.python = _interpreter(tmp_path, 'echo "$2"; [ "$2" != vllm.collect_env ]')
    assert bundle.collected_versions(opened, "vllm")[0] == "torch.utils.collect_env"
    opened.manifest.python = _interpreter(tmp_path, 'echo "$2 $3"')
    module = "transformers.cli.transformers env"
    assert bundle.collected_versions(opened, "transformers") == (module, module)


#: The fields of .github/ISSUE_TEMPLATE: PyTorch's pt2-bug-report.yml, vLLM's 400-bug-report.yml,
#: transformers' bug-report.yml.
FIELDS = {
    "pytorch": ["🐛 Describe the bug", "Error logs", "Versions"],
    "vllm": [
        "Your current environment",
        "🐛 Describe the bug",
        "Before submitting a new issue...",
    ],
    "transformers": [
        "System Info",
        "Who can help?",
        "Information",
        "Tasks",
        "Reproduction",
        "Expected behavior",
    ],
    "generic": ["What happened", "Error", "Versions"],
}


@pytest.mark.parametrize("form", FIELDS)
def test_a_form_has_its_fields_in_its_order(facts, form):
    facts.form, facts.error = form, "Traceback (most recent call last):\nValueError: x"
    facts.versions, facts.versions_by = "torch 9", "vllm.collect_env"
    page = render(facts)
    fields = re.split(r"^### (.*)$", page, flags=re.M)
    assert fields[1::2] == FIELDS[form]
    texts = dict(zip(fields[1::2], map(str.strip, fields[2::2]), strict=True))
    assert all(texts.values())
    environment = texts[FIELDS[form][0 if form in ("vllm", "transformers") else -1]]
    assert "<summary>The output of <code>python -m vllm.collect_env</code></summary>" in environment
    bug = next(text for text in texts.values() if "a tool wrote this" in text)
    assert "#### How to reproduce" in bug
    inline = form in ("vllm", "transformers")  # they have no field for the error alone
    assert ("ValueError: x" in bug) == inline
    assert (f"github.com/{TRACKERS[form].repository}/issues?q=" in page) == (form != "generic")
    assert page.startswith("_Title of the issue: \\[Bug\\]:") == (form == "vllm")


def test_boxes_of_a_form_are_as_it_has_them_and_not_ticked(facts):
    boxes = {"vllm": 1, "transformers": 4}
    for facts.form, number in boxes.items():
        page = render(facts)
        assert page.count("\n- [ ] ") == number
        assert "[x]" not in page


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Reproducer("minified", DIFFERENCE, times=3, shown=3), "reproduces 3 of 3 times"),
        (Reproducer("graph", DIFFERENCE), "It was not run"),
        (
            Reproducer("script", DIFFERENCE, times=1, before=True),
            "only with the strings that were taken out",
        ),
        (
            Reproducer("script", DIFFERENCE, times=1, printed="KeyError: 1"),
            "It printed `KeyError: 1`.",
        ),
    ],
)
def test_a_reproducer_says_what_it_is_and_how_often_it_showed_the_fault(facts, found, said):
    facts.reproducer = found
    assert said in render(facts)
