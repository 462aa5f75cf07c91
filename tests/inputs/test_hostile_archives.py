"""Archives that are known to hurt: nothing is written elsewhere, memory and time are bounded."""

import time
from pathlib import Path

import pytest
from hostile_archives import ARCHIVES, packed_in_tar

from traceview.__main__ import main
from traceview.inputs import READ_ERRORS, find

#: Of the limits here: what is copied, read and held stays near them.
BOMB, UNPACKED = 1 << 20, 8 << 20
SCRATCH_BYTES, HELD_BYTES, SECONDS = UNPACKED + (1 << 20), 48 << 20, 3.0
#: Of these nothing is read: packed twice, too deep, or damaged before a block is whole.
NOTHING = {
    *("gz twice", "bz2 twice", "xz twice", "zip of zips"),
    *("xz damaged", "bz2 damaged", "bz2 cut", "xz of much memory"),
}


def everything(folder):
    return {path: path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()}


def highest():
    """The most memory that this process has had since ``forget``, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) << 10


def forget():
    Path("/proc/self/clear_refs").write_text("5")


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside"])
@pytest.mark.parametrize("name", ARCHIVES)
def test_a_hostile_archive_is_read_within_bounds(tmp_path, limit, name, inside):
    limit(bomb=BOMB, unpacked=UNPACKED, members=1000)
    folder, scratch = tmp_path / "a/b/c", tmp_path / "a/b/run/scratch"
    for made in (folder, scratch):
        made.mkdir(parents=True)
    path = folder / "x.log"
    data = ARCHIVES[name]()
    path.write_bytes(packed_in_tar(data) if inside else data)
    before, elsewhere = everything(tmp_path), set(Path("/tmp").iterdir())
    del data
    forget()
    held, began, got = highest(), time.process_time(), 0
    found = find([str(path)], scratch)
    for source in found.sources:
        try:
            with source.open() as stream:
                while block := stream.read(1 << 16):
                    got += len(block)
        except READ_ERRORS:
            pass
    assert time.process_time() - began < SECONDS
    assert highest() - held < HELD_BYTES
    assert got < 4 * UNPACKED
    written = {p: size for p, size in everything(tmp_path).items() if p not in before}
    assert all(made.parent == scratch and made.name.isdecimal() for made in written)
    assert sum(written.values()) < SCRATCH_BYTES
    assert not [path for path in {*Path("/tmp").iterdir()} - elsewhere if "hostile" in path.name]
    assert found.sources or found.damaged or found.skipped
    assert bool(found.sources) != (name in NOTHING) or inside


def test_there_are_a_hundred():
    assert len(ARCHIVES) >= 100


def test_all_of_them_through_the_command(tmp_path, monkeypatch, capsys):
    """Together they are a post-mortem that names each; what can be read of them is in the run."""
    folder = tmp_path / "a/b/logs"
    folder.mkdir(parents=True)
    for name in ("tar name up", "zip overlapping", "gz bomb", "tar symlink", "zip size unknown"):
        (folder / f"{name}.log").write_bytes(ARCHIVES[name]())
    before = everything(tmp_path)
    run = tmp_path / "a/b/run"
    limits = [f"--limit={text}" for text in (f"bomb={BOMB}", "unpacked=64M", "members=1000")]
    words = ["postmortem", "--json", "--workers", "1", "-o", str(run), *limits, str(folder)]
    monkeypatch.setattr("sys.argv", ["traceview", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "Traceback" not in capsys.readouterr().err
    assert all(run in path.parents for path in everything(tmp_path).keys() - before.keys())
    assert not (run / "scratch").exists()
