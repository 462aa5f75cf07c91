"""Archives and packed files: every format, one in another, cut, damaged, and bombs."""

import bz2
import gzip
import lzma
import tarfile
import zipfile

import pytest
from logs import read, structured, tar_of, textlog, zip_of
from msgspec import structs

from traceview.inputs import DamagedInput, find
from traceview.inputs.packing import packing_of

FILES = {"logs/rank_0.log": structured(), "logs/out.txt": textlog(), "logs/train.py": b"import x"}
KINDS = {"logs/rank_0.log": "structured", "logs/out.txt": "textlog"}


def zstd(data):
    return pytest.importorskip("backports.zstd").compress(data)


PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}
ARCHIVES = {
    "tar": lambda: tar_of(FILES),
    "gnu": lambda: tar_of(FILES, format=tarfile.GNU_FORMAT),
    "ustar": lambda: tar_of(FILES, format=tarfile.USTAR_FORMAT),
    "tar.gz": lambda: gzip.compress(tar_of(FILES)),
    "tar.zst": lambda: zstd(tar_of(FILES)),
    "tar.xz": lambda: lzma.compress(tar_of(FILES)),
    "zip": lambda: zip_of(FILES),
    "stored zip": lambda: zip_of(FILES, zipfile.ZIP_STORED),
    "bzip2 zip": lambda: zip_of(FILES, zipfile.ZIP_BZIP2),
    "streamed zip": lambda: zip_of(FILES, streamed=True),
}


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def found_in(tmp_path, data, scratch=None):
    path = tmp_path / "packed"
    path.write_bytes(data)
    return find([str(path)], scratch)


@pytest.mark.parametrize("suffix", PACKERS)
def test_packed_files_are_read(tmp_path, suffix):
    (source,) = found_in(tmp_path, PACKERS[suffix](structured())).sources
    assert source.kind == "structured"
    assert source.path is None
    assert read(source) == structured()


@pytest.mark.parametrize("suffix", PACKERS)
def test_packed_files_one_behind_the_other_are_one(tmp_path, suffix):
    half = len(structured()) // 2
    parts = [PACKERS[suffix](part) for part in (structured()[:half], structured()[half:])]
    (source,) = found_in(tmp_path, b"".join(parts)).sources
    assert read(source) == structured()


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_cut_packed_file_gives_what_it_holds_and_then_complains(tmp_path, suffix, share):
    whole = b"".join(structured(name) for name in ("autograd", "inductor", "breaks"))
    packed = PACKERS[suffix](whole)
    found = found_in(tmp_path, packed[: int(len(packed) * share)])
    if not found.sources:  # bzip2 and xz give nothing before a block is whole
        assert found.damaged[0].kind == "truncated"
        return
    got = b""
    with found.sources[0].open() as stream, pytest.raises(DamagedInput) as error:  # noqa: PT012
        while block := stream.read(1 << 16):
            got += block
    assert whole.startswith(got)
    assert error.value.kind == "truncated"
    assert suffix in ("bz2", "xz", "zst") or len(got) > len(whole) * share * 0.5


def test_damaged_packed_data_gives_what_lies_before(tmp_path):
    packed = bytearray(gzip.compress(structured("breaks")))
    middle = len(packed) // 2
    packed[middle : middle + 64] = b"\xff" * 64
    (source,) = found_in(tmp_path, bytes(packed)).sources
    got = b""
    with source.open() as stream, pytest.raises(EOFError):  # noqa: PT012
        while block := stream.read(1 << 16):
            got += block
    assert len(got) > 100_000


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("kept", [True, False])
def test_members_are_read_from_the_copy_and_from_the_archive(tmp_path, scratch, kind, kept):
    found = found_in(tmp_path, ARCHIVES[kind](), scratch if kept else None)
    assert {source.member: source.kind for source in found.sources} == KINDS
    assert [s.name for s in found.skipped] == ["packed!/logs/train.py"]
    for source in found.sources:
        assert (source.path is not None) == kept
        assert read(source) == FILES[source.member]
        assert read(structs.replace(source, copy=None)) == FILES[source.member]


def test_an_archive_in_an_archive_is_read_one_deeper_is_not(tmp_path, scratch):
    inner = gzip.compress(tar_of({"a.log": structured()}))
    middle = tar_of({"inner.tgz": inner, "b.log": gzip.compress(textlog())})
    found = found_in(tmp_path, zip_of({"middle.tar": middle}), scratch)
    assert [s.name for s in found.sources] == ["packed!/middle.tar!/b.log"]
    assert read(found.sources[0]) == textlog()
    assert [s.name for s in found.skipped] == ["packed!/middle.tar!/inner.tgz"]


def test_nothing_is_written_where_an_archive_says(tmp_path, scratch):
    names = ("../../up.log", "/tmp/absolute.log", "scratch/../x.log")
    files = {name: structured() + name.encode() for name in names}
    for data in (tar_of(files), zip_of(files)):
        found = found_in(tmp_path, data, scratch)
        assert len(found.sources) == 3
        written = {path for path in tmp_path.rglob("*") if path.is_file()}
        assert all(p.parent == scratch or p == tmp_path / "packed" for p in written)


def test_links_and_devices_in_a_tar_are_stepped_over(tmp_path, scratch):
    path = tmp_path / "links.tar"
    with tarfile.open(path, "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo(f"link{kind.decode()}")
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        (tmp_path / "x.log").write_bytes(structured())
        archive.add(tmp_path / "x.log", "x.log")
    found = find([str(path)], scratch)
    assert [source.member for source in found.sources] == ["x.log"]


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names(tmp_path, scratch, format):
    long = "/".join(["folder" * 10] * 5) + "/x.log"
    found = found_in(tmp_path, tar_of({long: structured()}, format=format), scratch)
    assert [source.member for source in found.sources] == [long]


def test_names_that_repeat(tmp_path, scratch):
    padded = tar_of({"a.log": structured()}).rstrip(b"\0")
    padded += b"\0" * (-len(padded) % 512)
    found = found_in(tmp_path, padded + tar_of({"a.log": textlog()}), scratch)
    assert [source.member for source in found.sources] == ["a.log", "a.log (2)"]


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip", "streamed zip"])
def test_a_cut_archive_gives_all_that_lies_before(tmp_path, scratch, kind):
    data = ARCHIVES[kind]()
    found = found_in(tmp_path, data[: int(len(data) * 0.5)], scratch)
    assert [source.member for source in found.sources] == ["logs/rank_0.log"]
    got = b""
    with found.sources[0].open() as stream:
        got = stream.read()
    assert got
    assert structured().startswith(got)
    assert {entry.kind for entry in found.damaged} == {"truncated"}


def test_an_encrypted_member_is_skipped_and_said(tmp_path, scratch):
    data = bytearray(zip_of({"secret.log": structured(), "open.log": textlog()}))
    data[6] |= 1
    found = found_in(tmp_path, bytes(data), scratch)
    assert [source.member for source in found.sources] == ["open.log"]
    assert [(d.name, d.kind) for d in found.damaged] == [("packed!/secret.log", "unknown_packing")]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_bomb_ends_at_what_can_be_meant(tmp_path, limit, pack):
    limit(bomb=1 << 20)
    (source,) = found_in(tmp_path, pack(structured() + b"\n" * (1 << 27))).sources
    got = 0
    with source.open() as stream, pytest.raises(DamagedInput) as error:  # noqa: PT012
        while block := stream.read(1 << 20):
            got += len(block)
    assert error.value.kind == "unpacks_too_far"
    assert got < 1 << 26


def test_many_small_bombs_in_one_archive_are_one(tmp_path, scratch, limit):
    limit(bomb=1 << 20, ratio=20)
    member = structured() + b"\n" * (1 << 22)
    found = found_in(tmp_path, zip_of({f"{n}.log": member for n in range(20)}), scratch)
    written = sum(path.stat().st_size for path in scratch.iterdir())
    assert "unpacks_too_far" in {entry.kind for entry in found.damaged}
    assert written < 20 * len(member) / 2


def test_too_many_members_end_the_archive(tmp_path, scratch, limit):
    limit(members=10)
    files = {f"{n}.log": structured() + b"%d" % n for n in range(20)}
    found = found_in(tmp_path, tar_of(files), scratch)
    assert len(found.sources) == 10
    assert [entry.kind for entry in found.damaged] == ["too_many_members"]


def test_zstd_says_what_to_install(tmp_path, monkeypatch):
    packed = zstd(structured())
    monkeypatch.setitem(__import__("sys").modules, "backports", None)
    found = found_in(tmp_path, packed)
    assert packing_of(packed) == "zstd"
    assert found.damaged[0].kind == "not_installed"
    assert "traceview[zstd]" in found.damaged[0].what
