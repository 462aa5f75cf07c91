"""``traceview try`` and ``sweep`` with a collector that leaves events made by hand."""

import json
import re
from dataclasses import replace

import jsonschema
import pytest
from cli_runs import Cli
from recordings import unpack
from trial_events import blocks, check, measured, trial, write

from traceview import collectors
from traceview.collectors import trials as door
from traceview.run import Ending, Run
from traceview.trials.model import schema

SWITCH = "torch._dynamo.config.capture_scalar_outputs=True"


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


@pytest.fixture
def run(tmp_path):
    return unpack("bad-gb_item", tmp_path)


@pytest.fixture
def target(monkeypatch):
    """``target(gain)``: every trial gains that; the calls that were made."""
    calls = []

    def answer(gain, leaves=measured):
        class Trials:
            def __init__(self, options, run, console):
                self.options, self.run = options, run

            def __enter__(self):
                return self

            def __exit__(self, *_error):
                for call in calls:
                    call["cleared"] = True

            def carry_out(self, asked, *, seconds, baseline="compiled", timeout_s=None, how=None):
                calls.append({"options": self.options, "asked": asked, "run": self.run})
                calls[-1] |= {
                    "baseline": baseline,
                    "seconds": timeout_s,
                    "blocks": seconds,
                    "how": how,
                }
                raw = self.run.folder / "raw" / f"trials-{len(calls)}"
                events = [e for one in asked for e in leaves(one.name, gain, base=baseline)]
                return write(raw, events), Ending("exit", 0)

        monkeypatch.setattr(door, "Trials", Trials)
        return calls

    return answer


def test_a_run_folder_continues(cli, run, target):
    calls = target(1.5)
    cli("try", run)
    assert cli.code == 0
    (call, *_) = calls
    assert [one.settings for one in call["asked"]] == [(SWITCH,)]
    assert (call["baseline"], call["seconds"]) == ("compiled", pytest.approx(600, abs=5))
    assert call["cleared"]
    assert call["options"].target == Run.open(run).manifest.target[0]
    assert call["options"].python == Run.open(run).manifest.python
    assert cli.out.startswith("▲ 1.50× (1.49–1.51×) against the compiled step as it is:")
    assert re.search(r"^ 1 ▲ accepted  1\.50× \(1\.49–1\.51×\)  torch\._dynamo", cli.out, re.M)
    assert "10.0 ms → 6.67 ms per step (medians of 8 pairs of blocks, host clock)" in cli.out
    assert "−3.33 ms measured, −" in cli.out
    assert "    torch._dynamo.config.capture_scalar_outputs = True" in cli.out
    assert cli.out.rstrip().endswith(f"results: {run / 'trials.html'}")
    assert "\x1b" not in cli.out
    assert "Tried: accepted 1.50× (1.49–1.51×)" in (run / "report.html").read_text()
    cli("report", run)
    assert "Tried: accepted 1.50× (1.49–1.51×)" in (run / "report.html").read_text()


def test_an_interrupted_diagnosis_is_an_interrupt(cli, run, target):
    """Also where nothing was left to try: its findings offer no remedy."""
    target(1.5)
    manifest = json.loads((run / "run.json").read_text())
    manifest["passes"][0]["ending"]["kind"] = "interrupted"
    (run / "run.json").write_text(json.dumps(manifest))
    assert cli("try", "--ignore", "gb", run).code == 130


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_was_measured_is_printed_on_a_full_disk(cli, run, target, form):
    target(1.5)
    (run / "trials.json").mkdir()
    assert cli("try", *form, run).code == 2
    assert "1.5" in cli.out
    assert "trials.json could not be written" in cli.err


def test_json_is_one_document_that_fits_its_schema(cli, run, target):
    target(1.5)
    cli("try", "--json", run)
    document = json.loads(cli.out)
    jsonschema.validate(document, schema())
    assert json.loads((run / "trials.json").read_text()) == document
    (one,) = document["trials"]
    assert (one["rule"], one["verdict"], one["outputs_agree"]) == ("gb-item", "accepted", True)
    assert document["recommended"]["trials"] == [SWITCH]
    assert document["environment"]["torch_version"]
    assert "trials.html" in cli.err


def test_a_script_is_diagnosed_first(cli, run, target, monkeypatch):
    calls = target(1.5)
    seen = []
    monkeypatch.setattr(
        collectors, "collect", lambda options, _console: (seen.append(options), Run.open(run))[1]
    )
    cli("try", "--budget", "90s", "--steps", "5", "train.py", "--budget", "7")
    assert cli.code == 0
    assert (seen[0].target, seen[0].args, seen[0].steps) == ("train.py", ("--budget", "7"), 5)
    assert calls[0]["options"] == replace(seen[0], keep_cache=False)
    assert calls[0]["seconds"] == pytest.approx(90, abs=5)


@pytest.mark.parametrize(("gain", "code"), [(1.5, 0), (1.05, 1), (1.0, 1)])
def test_require_gain(cli, run, target, gain, code):
    target(gain)
    cli("try", "--require-gain", "1.1", run)
    assert cli.code == code


def test_nothing_accepted_says_so(cli, run, target):
    target(0.8)
    cli("try", run)
    assert cli.out.startswith("= 1 trial against the compiled step as it is, none accepted")
    assert " 1 ▼ slower  0.80× " in cli.out


def test_what_failed_says_why(cli, run, target):
    def failing(name, _gain, base):
        return [trial(name, "failed", why="RuntimeError: \x1b[31m<b>no</b>")]

    target(1.5, failing)
    cli("try", run)
    assert " 1 ✕ failed" in cli.out
    assert "RuntimeError: <b>no</b>" in cli.out
    page = (run / "trials.html").read_text()
    assert "RuntimeError: &lt;b&gt;no&lt;/b&gt;" in page
    assert "<b>no" not in page


class TestGoingOn:
    """What has a verdict is kept where others have none yet."""

    def leaving(self, name, gain, *, base):
        """The process ends before the blocks of fullgraph=True."""
        return measured(name, gain, base=base) if "fullgraph" not in name else []

    def test_the_rest_is_tried(self, cli, run, target):
        calls = target(1.3, self.leaving)
        cli("sweep", "--backends", "eager,aot_eager", run)
        assert "fullgraph=True" in cli.out
        first = json.loads((run / "trials.json").read_bytes())
        assert [row["name"] for row in first["not_tried"]] == ["fullgraph=True"]
        target(1.4)
        calls.clear()
        cli("sweep", "--backends", "eager,aot_eager", run)
        assert [one.name for call in calls for one in call["asked"]] == ["fullgraph=True"]
        made = json.loads((run / "trials.json").read_bytes())
        ratios = {row["name"]: round(row["ratio"], 1) for row in made["trials"]}
        assert ratios == {"backend=eager": 1.3, "backend=aot_eager": 1.3, "fullgraph=True": 1.4}
        assert made["not_tried"] == []

    def test_all_of_it_again_where_all_had_a_verdict(self, cli, run, target):
        calls = target(1.3)
        for _ in range(2):
            cli("sweep", "--backends", "eager", run)
        assert len(calls) == 2

    def test_what_is_asked_for_is_tried(self, cli, run, target):
        calls = target(1.3, self.leaving)
        cli("try", "--only", f"{SWITCH},fullgraph=True", run)
        calls.clear()
        cli("try", "--only", SWITCH, run)
        assert [one.name for one in calls[0]["asked"]] == [SWITCH]


class TestOnly:
    def test_settings_and_rules(self, cli, run, target):
        calls = target(1.0)
        cli("try", "--only", "TV101, mode=max-autotune+dynamic=False,rc-zero-one", run)
        assert [one.settings for one in calls[0]["asked"]] == [
            ("mode=max-autotune", "dynamic=False"),
            (SWITCH,),
        ]
        assert "rc-zero-one: this rule has no finding in this run" in cli.out

    def test_a_setting_that_a_finding_offers_keeps_its_rule(self, cli, run, target):
        calls = target(1.0)
        cli("try", "--only", f"gb-item,{SWITCH}", run)
        assert len(calls[0]["asked"]) == 1
        assert "for gb-item" in cli.out

    def test_a_word_that_is_neither(self, cli, run, target):
        calls = target(1.0)
        cli("try", "--only", "gb-itm", run)
        assert cli.code == 2
        assert "'gb-itm' is neither a rule nor a setting" in cli.err
        assert "gb-item" in cli.err
        assert calls == []

    def test_it_is_found_before_the_script_runs(self, cli, tmp_path, monkeypatch):
        monkeypatch.setattr(collectors, "collect", lambda *_: pytest.fail("it ran"))
        (tmp_path / "train.py").write_text("print(1)")
        cli("try", "--only", "recompile_limit=64", tmp_path / "train.py")
        assert cli.code == 2
        assert "'recompile_limit=64' is neither a rule nor a setting" in cli.err


class TestSweep:
    def test_every_combination_against_eager(self, cli, run, target):
        calls = target(1.2)
        cli("sweep", "--modes", "default,max-autotune", "--dynamic", "none,true", run)
        assert cli.code == 0
        (call,) = calls
        assert call["baseline"] == "eager"
        assert [one.settings for one in call["asked"]] == [
            ("mode=default", "dynamic=None"),
            ("mode=default", "dynamic=True"),
            ("mode=max-autotune", "dynamic=None"),
            ("mode=max-autotune", "dynamic=True"),
        ]
        assert "against an eager step" in cli.out

    def test_backends_also_force_a_full_graph(self, cli, run, target):
        calls = target(1.2)
        cli("sweep", "--backends", "eager,inductor", run)
        names = [one.name for one in calls[0]["asked"]]
        assert names == ["backend=eager", "backend=inductor", "fullgraph=True"]

    def test_nothing_to_sweep_over(self, cli, run):
        cli("sweep", run)
        assert cli.code == 2
        assert "Nothing to sweep over" in cli.err

    def test_its_trials_have_caches_of_their_own(self, cli, run, target):
        calls = target(1.2)
        cli("sweep", "--modes", "default", "--keep-debug", run)
        assert calls[0]["how"] == door.How(own_caches=True, keep_debug=True)
        cli("try", run)
        assert calls[1]["how"] == door.How()


class TestArguments:
    """``--args``: a process for each combination of the script's arguments."""

    def test_each_combination_is_a_process(self, cli, run, target):
        calls = target(1.2)
        cli("sweep", "--args", "--batch 1,8 --seq=4", "--modes", "default,max-autotune", run)
        assert cli.code == 0
        assert [call["how"].arguments for call in calls] == [
            ("--batch", "1", "--seq=4"),
            ("--batch", "8", "--seq=4"),
        ]
        names = [one.name for one in calls[0]["asked"]]
        assert names == ["mode=default", "mode=max-autotune"]
        assert re.search(r" 1 ▲ accepted  1.20× .*--batch 1 --seq=4 mode=default", cli.out)
        assert cli.out.startswith("▲ 1.20× (1.20–1.20×) against an eager step in the mean of 2")
        document = json.loads((run / "trials.json").read_text())
        jsonschema.validate(document, schema())
        assert document["trials"][2]["arguments"] == ["--batch", "8", "--seq=4"]
        cell = '<td class="arguments mono">--batch 8 --seq=4</td>'
        assert cell in (run / "trials.html").read_text()

    def test_the_first_one_is_diagnosed(self, cli, run, target, monkeypatch):
        calls = target(1.2)
        seen = []
        monkeypatch.setattr(
            collectors, "collect", lambda options, _: (seen.append(options), Run.open(run))[1]
        )
        cli("sweep", "--args", "--batch 1,8", "bench.py", "--fp16")
        assert seen[0].args == ("--fp16", "--batch", "1")
        assert {call["options"].args for call in calls} == {("--fp16",)}
        assert [call["how"].arguments[1] for call in calls] == ["1", "8"]
        assert [one.name for one in calls[0]["asked"]] == ["as the script compiles"]

    def test_a_script_that_fails_is_a_row(self, cli, run, target):
        error = {"event": "error", "t": 1.0, "type": "MemoryError", "message": "too large"}

        def leaves(name, gain, base):
            return [error] if len(calls) == 1 else measured(name, gain, base=base)

        calls = target(1.2, leaves)
        cli("sweep", "--args", "--batch 64,8", run)
        assert cli.code == 0
        assert re.search(r" 1 ✕ failed +--batch 64 as the script compiles", cli.out)
        assert "MemoryError: too large" in cli.out
        assert re.search(r" 2 ▲ accepted +1.20× .*--batch 8 as the", cli.out)
        assert "--batch 64: every trial failed." in cli.out

    @pytest.mark.parametrize("words", ["--batch 1", "--batch '1,8"])
    def test_what_can_not_be_swept(self, cli, run, target, words):
        calls = target(1.2)
        cli("sweep", "--args", words, run)
        assert (cli.code, calls) == (2, [])
        assert "--args can't be used: no" in cli.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "soon"], "is no time such as 90s"),
        (["--warm"], "--warm is for a new run"),
        (["-o", "x"], "--output is for a new run"),
    ],
)
def test_usage_errors(cli, run, target, words, said):
    calls = target(1.0)
    cli("try", *words, run)
    assert cli.code == 2
    assert said in cli.err
    assert calls == []


def test_arguments_do_not_follow_a_run_folder(cli, run, target):
    target(1.0)
    cli("try", run, "--big")
    assert cli.code == 2
    assert "Its script runs with the arguments of that run" in cli.err


def test_no_script(cli):
    cli("try")
    assert cli.code == 2
    assert "No script was given." in cli.err


class TestLadder:
    """The first backend that fails or differs says where the fault is."""

    @staticmethod
    def leaves(wrong, failing=()):
        def events(name, gain, base):
            if name in failing:
                return [trial(name, "failed", why="RuntimeError: no")]
            known = [*blocks(name, gain, base=base), trial(name)]
            return [*known, check(name, "trial", name not in wrong), check("", "compiled", False)]

        return events

    @pytest.mark.parametrize(
        ("wrong", "failing", "said"),
        [
            (
                {"backend=aot_eager_decomp_partition", "backend=inductor"},
                (),
                "backend=aot_eager_decomp_partition is the first backend that differs from eager:"
                " the fault is in decompositions and the split into forward and backward.",
            ),
            (
                {"backend=inductor"},
                {"backend=aot_eager"},
                "backend=aot_eager is the first backend that fails: the fault is in AOTAutograd,"
                " which takes writes out of the graph.",
            ),
            (
                set(),
                (),
                "No backend fails or differs from eager: eager, aot_eager,"
                " aot_eager_decomp_partition, inductor.",
            ),
        ],
    )
    def test_it_is_named(self, cli, run, target, wrong, failing, said):
        target(1.0, self.leaves(wrong, failing))
        cli("sweep", "--json", "--backends", "ladder", run)
        document = json.loads(cli.out)
        assert document["notes"] == [said]
        names = {one["name"] for one in document["trials"]}
        ladder = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
        assert names == {*(f"backend={rung}" for rung in ladder), "fullgraph=True"}

    def test_errors_stand_in_its_table(self, cli, run, target):
        target(1.0, self.leaves({"backend=inductor"}))
        cli("sweep", "--backends", "ladder", run)
        assert "RMSE 0.001, eager's 1e-07" in cli.out
        page = (run / "trials.html").read_text()
        assert page.count("difference 0.25<br>RMSE 0.001<br>eager's 1e-07") == 5


class TestOwnPatch:
    """``--patch``: the user's own change, with the file's path from where they are."""

    @pytest.fixture
    def diff(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "net.py").write_text("def f(x):\n    return x\n")

        def write_diff(text, name="net.py"):
            path = tmp_path / "my.diff"
            path.write_text(text.replace("NAME", name))
            return path

        return write_diff

    HUNK = "@@ -1,2 +1,2 @@\n def f(x):\n-    return x\n+    return 2 * x\n"
    PLAIN = f"--- NAME\n+++ NAME\n{HUNK}"
    GIT = f"diff --git a/net.py b/net.py\nindex 1..2 100644\n--- a/net.py\n+++ b/net.py\n{HUNK}"

    @pytest.mark.parametrize("text", [PLAIN, GIT])
    def test_it_alone_is_tried(self, cli, run, target, diff, tmp_path, text):
        calls = target(1.5)
        cli("try", "--patch", diff(text), run)
        assert cli.code == 0
        (one,) = calls[0]["asked"]
        assert one.name == "patch my.diff"
        file = tmp_path / "net.py"
        assert one.patch == f"--- {file}\n+++ {file}\n{self.HUNK}"

    def test_others_stand_next_to_it(self, cli, run, target, diff):
        calls = target(1.5)
        cli("try", "--patch", diff(self.PLAIN), "--only", "gb-item", run)
        assert [one.name for one in calls[0]["asked"]] == ["patch my.diff", SWITCH]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("hello", "it is no unified diff."),
            (PLAIN.replace("return x\n+", "return y\n+"), "line 2 of the file is not what"),
            (PLAIN.replace("NAME", "gone.py"), "No such file or directory."),
            (PLAIN + PLAIN, "it changes several files."),
        ],
    )
    def test_what_can_not_be_tried(self, cli, run, target, diff, text, said):
        calls = target(1.5)
        cli("try", "--patch", diff(text), run)
        assert (cli.code, calls) == (2, [])
        assert said in cli.err


@pytest.mark.parametrize(
    ("ending", "stderr", "said"),
    [
        (Ending("exit", 0), "a warning\n", None),
        (Ending("stopped", 0), "", None),
        (
            Ending("exit", 2),
            "usage\nbench.py: error: no such option\n\n",
            "exit code 2: bench.py: er",
        ),
        (Ending("exit", 1), None, "the script ended with exit code 1"),
        (Ending("signal", None, 11), "", "the process ended with SIGSEGV"),
        (Ending("signal", None, 200), "", "the process ended with signal 200"),
    ],
)
def test_how_a_process_failed_is_said(tmp_path, ending, stderr, said):
    if stderr is not None:
        (tmp_path / "stderr.txt").write_text(stderr)
    found = door.failure(ending, tmp_path)
    assert found is None if said is None else found.startswith(said)
