"""What is in the tree is in the wheel, and nothing generic lands in site-packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SKIP = {".git", ".venv", "build", "dist", "fixtures", "__pycache__"}
CACHES = {".mypy_cache", ".pytest_cache", ".ruff_cache"}


def copied(folder):
    """A clean copy of the tree."""
    source = folder / "source"
    ignore = lambda _, names: [n for n in names if n in SKIP | CACHES or n.endswith(".egg-info")]  # noqa: E731
    shutil.copytree(ROOT, source, ignore=ignore, symlinks=True)
    return source


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a clean copy through the sdist, as a release is."""
    scratch = tmp_path_factory.mktemp("package")
    source = copied(scratch)
    build = [sys.executable, "-m", "build", "--outdir", str(scratch / "dist"), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next((scratch / "dist").glob("*.whl"))


@pytest.mark.packaging
def test_every_module_of_the_tree_is_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("traceview", "collectors", "reports"):
        place = "traceview" if folder == "traceview" else f"traceview/{folder}"
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"{place}/{path.relative_to(ROOT / folder).as_posix()}" in names


@pytest.mark.packaging
def test_nothing_generic_lands_in_site_packages(wheel):
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"traceview"}


@pytest.mark.packaging
def test_the_wheel_works_where_torch_is_not(wheel, tmp_path):
    """Installed alone in a bare environment, the commands that need no torch answer."""
    env = str(tmp_path / "env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", env]
    subprocess.run([*pip, "install", "--quiet", "--no-compile", str(wheel)], check=True)
    listed = subprocess.run(
        [python, "-m", "traceview", "rules"], capture_output=True, text=True, cwd=tmp_path
    )
    assert listed.returncode == 0, listed.stderr
    assert "gb-item" in listed.stdout


@pytest.mark.packaging
@pytest.mark.parametrize("how", [[], ["--editable"]], ids=["copied", "editable"])
def test_installing_from_a_folder_leaves_nothing_in_it(tmp_path, how):
    source, env = copied(tmp_path), str(tmp_path / "env")
    before = sorted(source.rglob("*"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    pip = [sys.executable, "-m", "pip", "--python", env, "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, *how, str(source)], check=True)
    assert list((tmp_path / "env").rglob("traceview-*.dist-info"))
    assert sorted(source.rglob("*")) == before
