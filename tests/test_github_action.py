"""The GitHub Action: its steps as bash runs them, with a ``gh`` that records what it is given."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recordings import unpack

yaml = pytest.importorskip("yaml")
ACTION = Path(__file__).parents[1] / ".github" / "actions" / "traceview" / "action.yml"
FAKE_GH = """\
#!/bin/bash
printf '%s\\n' "$@" > "$GH_CALLS/$(ls "$GH_CALLS" | wc -l)"
if [ "$2" = --paginate ]; then cat "$GH_COMMENTS"; exit; fi
cat > "$GH_BODY"
exit "${GH_CODE:-0}"
"""
#: Keeps comments in a file, as GitHub does: two to a page, each of an app.
KEEPING_GH = f"""\
#!{sys.executable}
import json, os, sys
from pathlib import Path
store, asked = Path(os.environ["GH_COMMENTS"]), sys.argv[2:]
kept = json.loads(store.read_text())
if asked[0] == "--paginate":
    for first in range(0, len(kept) or 1, 2):
        print(json.dumps(kept[first : first + 2]), end="")
else:
    method, path, body = asked[1], asked[2], json.load(sys.stdin)["body"]
    if method == "POST" and path.endswith("/issues/7/comments"):
        kept.append({{"id": len(kept) + 1, "user": {{"type": "Bot"}}, "body": body}})
    elif method == "PATCH":
        (found,) = [each for each in kept if each["id"] == int(path.rpartition("/")[2])]
        found["body"] = body
    store.write_text(json.dumps(kept))
"""
MARK = "<!-- traceview: my-run -->\n"


def steps():
    return yaml.safe_load(ACTION.read_text())["runs"]["steps"]


def run_step(number, folder, **variables):
    """What the step prints, and its exit code; bash as GitHub starts it."""
    environment = {
        "PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        **variables,
    }
    script = folder / "step.sh"
    script.write_text(steps()[number]["run"])
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", script]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)


def test_the_action_has_what_github_asks_for():
    action = yaml.safe_load(ACTION.read_text())
    assert action["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in action["runs"]["steps"])
    assert all(given["description"] for given in action["inputs"].values())
    # What a pull request can set comes as a variable, not as a part of the script.
    assert not any("${{" in step["run"] for step in action["runs"]["steps"])
    given = {name for step in action["runs"]["steps"] for name in step.get("env", {})}
    assert given == {
        *("RUN", "BASELINE", "LIMITS", "BASELINE_LIMITS", "CHECK", "NAME"),
        *("GH_TOKEN", "REPOSITORY", "NUMBER"),
    }
    assert [step.get("if") for step in steps()] == [
        None,
        "inputs.comment == 'true' && github.event.pull_request",
        "steps.check.outputs.passed == 'false'",
    ]
    assert steps()[0]["id"] == "check"
    assert steps()[2]["run"] == "exit 1"


def test_the_workflow_of_the_docs_gives_inputs_that_there_are():
    action, docs = yaml.safe_load(ACTION.read_text()), Path(__file__).parents[1] / "docs"
    written = (docs / "integrations.md").read_text().split("```yaml\n")[1:]
    flows = [yaml.safe_load(text.partition("```")[0]) for text in written]
    flows += [yaml.safe_load((docs / "examples" / "traceview-check.yml").read_text())]
    uses = [
        step["with"]
        for flow in flows
        for job in (flow, *flow.get("jobs", {}).values())
        for step in job.get("steps", ())
        if step.get("uses") == "./.github/actions/traceview"
    ]
    assert uses
    for given in uses:
        assert given.keys() <= action["inputs"].keys()
        assert {name for name, each in action["inputs"].items() if each.get("required")} <= set(
            given
        )


@pytest.fixture
def github(tmp_path):
    """A function: the comments that are there, the code of ``gh`` → what it was asked to do."""
    if shutil.which("jq") is None:
        pytest.skip("jq, which GitHub's runners have, is not on PATH")
    gh = tmp_path / "gh"
    gh.write_text(FAKE_GH)
    gh.chmod(0o755)
    (tmp_path / "calls").mkdir()
    (tmp_path / "traceview-page.md").write_text(MARK + "\n    passed: 1 limit holds\n\n# …\n")

    def comment(*pages, code=0):
        (tmp_path / "comments").write_text("".join(map(json.dumps, pages)))
        done = run_step(
            1,
            tmp_path,
            REPOSITORY="me/mine",
            NUMBER="7",
            GH_TOKEN="t",
            GH_CALLS=str(tmp_path / "calls"),
            GH_COMMENTS=str(tmp_path / "comments"),
            GH_BODY=str(tmp_path / "body"),
            GH_CODE=str(code),
        )
        calls = [path.read_text().split() for path in sorted((tmp_path / "calls").iterdir())]
        assert calls[0] == ["api", "--paginate", "repos/me/mine/issues/7/comments?per_page=100"]
        return done, calls[1:]

    return comment


def comment_of(kind, number, body):
    return {"id": number, "user": {"type": kind}, "body": body}


def test_the_first_comment_is_created(github, tmp_path):
    others = [
        comment_of("User", 1, MARK + "spoofed"),
        comment_of("Bot", 2, "<!-- traceview: other -->"),
        comment_of("Bot", 3, f"quotes {MARK}"),
    ]
    done, calls = github(others)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    posted = ["api", "--method", "POST", "repos/me/mine/issues/7/comments"]
    assert calls == [[*posted, "--silent", "--input", "-"]]
    page = (tmp_path / "traceview-page.md").read_text()
    assert json.loads((tmp_path / "body").read_text()) == {"body": page}


def test_a_later_one_replaces_it(github):
    """On whatever page of the list it is."""
    ours = [comment_of("Bot", 42, MARK + "old"), comment_of("Bot", 43, MARK)]
    done, calls = github([comment_of("User", 1, "hello")], ours)
    assert done.returncode == 0
    patched = ["api", "--method", "PATCH", "repos/me/mine/issues/comments/42"]
    assert calls == [[*patched, "--silent", "--input", "-"]]


def test_many_runs_of_two_kinds_leave_one_comment_of_each(tmp_path):
    if shutil.which("jq") is None:
        pytest.skip("jq, which GitHub's runners have, is not on PATH")
    (tmp_path / "gh").write_text(KEEPING_GH)
    (tmp_path / "gh").chmod(0o755)
    store, page = tmp_path / "comments", tmp_path / "traceview-page.md"
    store.write_text(json.dumps([comment_of("User", number, "hello") for number in (1, 2, 3)]))
    known = {"REPOSITORY": "me/mine", "NUMBER": "7", "GH_TOKEN": "t", "GH_COMMENTS": str(store)}
    for time in range(3):
        for name in ("my-run", "other"):
            page.write_text(f"<!-- traceview: {name} -->\n\n{name} {time}\n")
            done = run_step(1, tmp_path, **known)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    bodies = [each["body"] for each in json.loads(store.read_text())]
    assert bodies[:3] == ["hello"] * 3
    assert [body.splitlines()[-1] for body in bodies[3:]] == ["my-run 2", "other 2"]


def test_a_long_page_is_cut_to_what_github_takes(github, tmp_path):
    (tmp_path / "traceview-page.md").write_text(MARK + "é" * 70_000)
    github([])
    assert len(json.loads((tmp_path / "body").read_text())["body"]) == 65_000


def test_a_token_that_can_not_write_is_a_warning(github):
    done, calls = github([], code=1)
    assert len(calls) == 1
    assert done.returncode == 0
    assert done.stdout.startswith("::warning title=traceview::")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return [unpack(f"{n}-gb_item", tmp_path_factory.mktemp(n)) for n in ("bad", "good")]


def checked(folder, run, baseline="", limits="", check="true"):
    done = run_step(
        0,
        folder,
        RUN=str(run),
        BASELINE=str(baseline),
        LIMITS=limits,
        BASELINE_LIMITS="--no new-findings",
        CHECK=check,
        NAME="my run",
    )
    output, page = folder / "output", folder / "traceview-page.md"
    return done, output.read_text() if output.exists() else None, page


@pytest.mark.live
def test_a_violated_limit_and_what_changed(runs, tmp_path):
    bad, good = runs
    done, output, page = checked(tmp_path, bad, good, "--max-breaks 0\n  --max-recompiles 9\n")
    assert (done.returncode, output) == (0, "passed=false\n")  # the last step fails
    assert done.stdout.startswith("::error ")
    assert "new-findings" in done.stdout
    text = page.read_text()
    assert text.startswith("<!-- traceview: my_run -->\n\n    ")
    assert "    max-breaks" in text
    assert "\n## " in text  # of `traceview compare --markdown`
    assert (tmp_path / "summary").read_text() == text


@pytest.mark.live
def test_without_baseline_there_is_the_report(runs, tmp_path):
    done, output, page = checked(tmp_path, runs[0], tmp_path / "none-yet", check="false")
    assert (done.returncode, output, done.stdout) == (0, "passed=true\n", "")
    assert "TV101" in page.read_text()


@pytest.mark.live
def test_nothing_to_check_is_an_error(runs, tmp_path):
    done, output, _ = checked(tmp_path, runs[1])
    assert (done.returncode, output) == (2, None)
    assert "Nothing to check" in done.stderr
