"""Which passes are run, with what command, and what the run folder says of them."""

import errno
import itertools
import json
import os
import stat
import textwrap
import time

import pytest
from parent_helpers import Listener, ending, environment, run_script

from traceview.collectors import CollectOptions, collect
from traceview.errors import RunFolderError


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return environment(tmp_path_factory.mktemp("passes"))


CALLED = "tell(event='first_call', region_id=0, step=0)\n"
BLOCKS = "tell(event='block', stance='eager')\ntell(event='block', stance='compiled')\n"
CRASH = "tell(event='error', stance='{stance}', type='RuntimeError')\nsys.exit(1)"


def passes(run):
    return [record.name for record in run.manifest.passes]


def child_config(run, name):
    return json.loads((run.folder / "raw" / name / "child.json").read_text())


def test_a_script_that_never_compiles_runs_once(tmp_path, python):
    assert passes(run_script(tmp_path, python, "print('hello')", warm=True)) == ["cold"]


def test_both_stances_measured_is_enough(tmp_path, python):
    assert passes(run_script(tmp_path, python, CALLED + BLOCKS)) == ["cold"]


def test_an_early_end_is_followed_by_an_eager_run_which_is_announced(tmp_path, python):
    console = Listener()
    run = run_script(tmp_path, python, CALLED, console)
    assert passes(run) == ["cold", "baseline"]
    assert run.manifest.passes[1].why == console.said[-1]
    config = child_config(run, "baseline")
    assert (config["mode"], config["stop_after_steps"]) == ("eager", None)
    assert child_config(run, "cold")["mode"] == "paired"


def test_no_baseline_measures_compiled_alone(tmp_path, python):
    run = run_script(tmp_path, python, CALLED, no_baseline=True)
    assert passes(run) == ["cold"]
    assert child_config(run, "cold")["mode"] == "compiled"


def test_compiling_switched_off_needs_no_baseline(tmp_path, python):
    assert passes(run_script(tmp_path, python, CALLED + "tell(event='disabled', by='env')")) == [
        "cold"
    ]


def test_a_crash_while_compiled_is_tried_in_eager_a_few_steps_further(tmp_path, python):
    body = CALLED + BLOCKS + "tell(event='steps', rows=[[6, 0, 1, 0], [7, 0, 1, 0]])\n"
    run = run_script(tmp_path, python, body + CRASH.format(stance="compiled"))
    assert passes(run) == ["cold", "baseline"]
    assert child_config(run, "baseline")["stop_after_steps"] == 10


def test_a_crash_in_eager_is_the_scripts_own(tmp_path, python):
    assert passes(run_script(tmp_path, python, CALLED + CRASH.format(stance="eager"))) == ["cold"]


def test_a_script_that_is_too_large_for_eager_runs_compiled_alone(tmp_path, python):
    body = """
    config = json.loads((Path(os.environ["TORCH_TRACE"]).parent / "child.json").read_text())
    tell(event='first_call', region_id=0, step=0)
    if config["mode"] == "paired":
        tell(event='error', stance='eager', type='OutOfMemoryError')
        sys.exit(1)
    """
    run = run_script(tmp_path, python, textwrap.dedent(body))
    assert passes(run) == ["cold"]
    config = child_config(run, "cold")
    why = "in eager the script runs out of memory"
    assert (config["mode"], config["without_eager"]) == ("compiled", why)
    assert why in run.manifest.passes[0].why.replace("In", "in", 1)


def test_a_segmentation_fault_while_compiled_is_tried_in_eager(tmp_path, python):
    body = CALLED + "tell(event='phase', phase='cold', stance='compiled', step=2)\n"
    run = run_script(tmp_path, python, body + "os.kill(os.getpid(), 11)")
    assert passes(run) == ["cold", "baseline"]
    assert child_config(run, "baseline")["stop_after_steps"] == 5


def test_warm_repeats_on_the_same_cache(tmp_path, python):
    run = run_script(tmp_path, python, CALLED + BLOCKS, warm=True, keep_cache=True)
    assert passes(run) == ["cold", "warm"]
    environments = [record.environment for record in run.manifest.passes]
    assert environments[0]["TORCHINDUCTOR_CACHE_DIR"] == environments[1]["TORCHINDUCTOR_CACHE_DIR"]
    assert environments[0]["TORCH_TRACE"] != environments[1]["TORCH_TRACE"]
    config = child_config(run, "warm")
    assert (config["mode"], config["blocks"], config["profile"]) == ("compiled", 1, False)


def test_warm_is_not_tried_after_a_failure(tmp_path, python):
    body = CALLED + BLOCKS + "sys.exit(2)"
    assert passes(run_script(tmp_path, python, body, warm=True)) == ["cold"]


FILLS = """
cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
cache.mkdir(parents=True)
(cache / "kernel").touch()
"""


def test_the_cache_is_removed_unless_it_is_to_be_kept(tmp_path, python):
    run = run_script(tmp_path, python, FILLS)
    assert not (run.folder / "cache").exists()
    run = run_script(tmp_path, python, FILLS, keep_cache=True)
    assert run.folder.name == "out-2"
    assert (run.folder / "cache/inductor/kernel").exists()


def test_options_reach_the_collector_in_the_target(tmp_path, python, monkeypatch):
    monkeypatch.setenv("TORCH_LOGS", "+dynamo")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    run = run_script(tmp_path, python, "", steps=5, blocks=3, run_to_end=True, profile=False)
    config = child_config(run, "cold")
    assert {"PYTHONPATH", "TORCH_LOGS", "TORCH_TRACE"} <= set(config.pop("variables"))
    assert config == {
        "format": 1,
        "run": str(run.folder),
        "raw": str(run.folder / "raw/cold"),
        "pass": "cold",
        "mode": "paired",
        "without_eager": None,
        "nproc": 1,
        "steps": 5,
        "blocks": 3,
        "run_to_end": True,
        "stop_after_steps": None,
        "after_steps": 0,
        "compile_target": None,
        "compile_options": {},
        "profile": False,
        "compare_outputs": False,
        "bisect_s": 0.0,
        "record_mb": 0,
        "timeout_s": None,
        "pythonpath": "/somewhere",
        "user_logs": ["+dynamo"],
        "torch_logs": "+dynamo",
        "script_root": str(tmp_path.resolve()),
    }
    assert run.manifest.passes[0].environment["TORCH_LOGS"].startswith("+dynamo,graph_breaks")


def test_a_module_runs_as_with_python_m(tmp_path, python, monkeypatch):
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text(
        "import sys\nopen('seen', 'w').write(f'{__name__} {__package__} {sys.argv}')\n"
    )
    options = CollectOptions("module", "pkg.train", ("--lr", "1"), python)
    run = collect(options, Listener())
    assert run.folder == tmp_path / "traceview-pkg.train"
    script = package / "train.py"
    assert (tmp_path / "seen").read_text() == f"__main__ pkg {[str(script), '--lr', '1']}"
    assert child_config(run, "cold")["script_root"] == str(package)


def test_a_disk_that_fills_up_while_the_script_runs(tmp_path, python, monkeypatch):
    """The last try to write the manifest comes after the caches are gone."""
    replace, calls = os.replace, []

    def full_at_the_third(source, target):
        calls.extend([target] * (target.name == "run.json"))
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr("os.replace", full_at_the_third)
    run = run_script(tmp_path, python, "sys.exit(3)")
    assert len(calls) == 4
    assert ending(run)["code"] == 3


def test_a_disk_that_stays_full_is_one_clear_sentence(tmp_path, python, monkeypatch):
    replace, calls = os.replace, []

    def full_from_the_third(source, target):
        calls.extend([target] * (target.name == "run.json"))
        if len(calls) >= 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr("os.replace", full_from_the_third)
    with pytest.raises(RunFolderError, match="No space left on device"):
        run_script(tmp_path, python, f"Path({str(tmp_path / 'ran')!r}).touch()")
    assert (tmp_path / "ran").exists()


def test_commands_are_the_users_own():
    script = CollectOptions("script", "train.py", ("--lr", "1"))
    assert script.command("py") == ["py", "train.py", "--lr", "1"]
    module = CollectOptions("module", "pkg.train", ("x",), nproc=2)
    assert module.command("py") == [
        *["py", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"],
        *["-m", "pkg.train", "x"],
    ]


def test_a_log_that_tlparse_cannot_read_is_a_note(tmp_path, python):
    body = 'Path(os.environ["TORCH_TRACE"], "a.log").write_bytes(b"\\xff not a log\\n")'
    run = run_script(tmp_path, python, body)
    reports = [path.name for path in (run.folder / "tlparse" / "cold").glob("0/index.html")]
    assert bool(reports) != any("tlparse" in note for note in run.manifest.notes)


def test_a_tlparse_that_fails_hangs_or_is_missing_is_a_note(tmp_path, python, monkeypatch):
    body = 'Path(os.environ["TORCH_TRACE"], "a.log").touch()'
    module = "traceview.collectors.tlparse_report"
    fake = tmp_path / "tlparse"
    notes = []
    monkeypatch.setattr(f"{module}.WITHIN_S", 0.5)
    for program in ("echo broken >&2; exit 3", "sleep 20", None):
        if program is not None:
            fake.write_text(f"#!/bin/sh\n{program}\n")
            fake.chmod(0o755)
        monkeypatch.setattr(f"{module}.find_tlparse", lambda found=program: found and str(fake))
        notes += run_script(tmp_path, python, body).manifest.notes
    assert notes[0] == "tlparse failed on raw/cold/structured/a.log: broken"
    assert "did not finish" in notes[1]
    assert "not found" in notes[2]


def test_a_log_too_large_for_tlparse_is_left_out(tmp_path, python, monkeypatch):
    monkeypatch.setattr("traceview.collectors.tlparse_report.LARGEST_MB", 0)
    body = 'Path(os.environ["TORCH_TRACE"], "a.log").write_bytes(b"x" * 2_000_000)'
    assert run_script(tmp_path, python, body).manifest.notes == [
        "tlparse did not run on raw/cold/structured/a.log: 2 MB is too large for it."
    ]


def test_the_folder_is_its_owners_and_the_scripts_umask_is_its_own(tmp_path, python):
    body = f"Path({str(tmp_path / 'mine')!r}).touch()\nprint('x', file=sys.stderr)"
    run = run_script(tmp_path, python, body)
    ours = ("run.json", "raw/cold/child.json", "raw/cold/stderr.txt", ".gitignore")
    modes = [stat.S_IMODE((run.folder / name).stat().st_mode) for name in ours]
    assert modes == [0o600] * len(ours)
    assert stat.S_IMODE(run.folder.stat().st_mode) == 0o700
    os.umask(mask := os.umask(0))
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o666 & ~mask


def test_a_clock_that_is_set_back_while_the_script_runs(tmp_path, python, monkeypatch):
    now, looks = time.time, itertools.count()
    monkeypatch.setattr(time, "time", lambda: now() - 3600 * (next(looks) > 2))
    run = run_script(tmp_path, python, "tell(event='first_call')\nsys.exit(3)")
    assert next(looks) > 3
    assert (ending(run)["code"], ending(run)["kind"]) == (3, "exit")
    assert 0 <= ending(run)["wall_s"] < 60
