"""Where a run is written, and that nothing else is ever touched."""

import json
import shutil
from collections import namedtuple
from contextlib import ExitStack
from pathlib import Path

import pytest
from parent_helpers import Listener

from traceview.collectors import CollectOptions
from traceview.collectors.output_folder import output_folder
from traceview.errors import RunFolderError
from traceview.run import Manifest, Run


def choose(console=None, **options):
    options = {"kind": "script", "target": "dir/my train.py", **options}
    with ExitStack() as held:
        return output_folder(CollectOptions(**options), console or Listener(), held)


def test_the_default_name_is_the_scripts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert choose() == tmp_path / "traceview-my_train"
    assert choose(kind="module", target="pkg.train") == tmp_path / "traceview-pkg.train"
    assert choose(target="...") == tmp_path / "traceview-run"


def test_a_folder_that_exists_is_left_and_the_next_free_name_taken(tmp_path):
    wanted = tmp_path / "out"
    console = Listener()
    names = []
    for _ in range(3):
        folder = choose(console, out=wanted)
        (folder / "something").write_text("kept")
        names.append(folder.name)
    assert names == ["out", "out-2", "out-3"]
    assert (wanted / "something").read_text() == "kept"
    assert len(console.said) == 2
    assert "out-3" in console.said[1]


def test_an_empty_folder_is_used(tmp_path):
    assert choose(out=tmp_path) == tmp_path


def test_a_file_of_that_name_is_left_alone(tmp_path):
    (tmp_path / "out").write_text("mine")
    assert choose(out=tmp_path / "out").name == "out-2"
    assert (tmp_path / "out").read_text() == "mine"


def test_force_clears_only_what_a_run_of_ours_wrote(tmp_path):
    folder = tmp_path / "out"
    Run.create(folder, Manifest(traceview="1"))
    (folder / "raw" / "cold").mkdir()
    (folder / "report.html").write_text("old")
    (folder / "notes.txt").write_text("mine")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (folder / "tables").symlink_to(outside)
    assert choose(out=folder, force=True) == folder
    assert sorted(path.name for path in folder.iterdir()) == [".gitignore", "notes.txt"]
    assert (outside / "kept").exists()


@pytest.mark.parametrize("manifest", [None, "{", "[]", json.dumps({"format": 1})])
def test_force_deletes_nothing_in_a_folder_that_is_not_a_run(tmp_path, manifest):
    (tmp_path / "raw").mkdir()
    if manifest is not None:
        (tmp_path / "run.json").write_text(manifest)
    with pytest.raises(RunFolderError) as caught:
        choose(out=tmp_path, force=True)
    assert caught.value.slug == "not-ours"
    assert (tmp_path / "raw").is_dir()


def test_force_refuses_a_file(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(RunFolderError):
        choose(out=tmp_path / "out", force=True)
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("folder", ["/proc/traceview", "/dev/null/out"])
def test_a_place_that_cant_be_written(folder):
    with pytest.raises(RunFolderError) as caught:
        choose(out=Path(folder))
    assert caught.value.slug == "unwritable"
    assert "-o" in caught.value.remedy


def test_a_full_disk_is_refused_before_the_script_runs(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**9, 10**9, 5_000_000))
    with pytest.raises(RunFolderError) as caught:
        choose(out=tmp_path / "out")
    assert caught.value.slug == "disk-full"
    assert "5 MB" in caught.value.fact
    assert not (tmp_path / "out").exists()


def test_git_ignores_a_run_and_a_file_of_the_users_own_stays(tmp_path):
    Run.create(tmp_path / "run", Manifest())
    assert (tmp_path / "run" / ".gitignore").read_text() == "*\n"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".gitignore").write_text("raw/\n")
    Run.create(tmp_path / "mine", Manifest())
    assert (tmp_path / "mine" / ".gitignore").read_text() == "raw/\n"
