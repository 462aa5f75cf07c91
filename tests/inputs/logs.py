"""Recorded logs for tests of inputs, packed and wrapped in every way."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def structured(name="autograd"):
    """The bytes of a recorded structured log."""
    return gzip.decompress((FIXTURES / "structured" / f"{name}.log.gz").read_bytes())


def textlog(name="recompiles"):
    """The bytes of a recorded TORCH_LOGS text."""
    return gzip.decompress((FIXTURES / "textlogs" / f"{name}.torch_logs.txt.gz").read_bytes())


def read(source, size=1 << 16):
    """All bytes of a source."""
    with source.open() as stream:
        return b"".join(iter(lambda: stream.read(size), b""))


def tar_of(files, mode="w", format=tarfile.PAX_FORMAT):
    """An archive of ``files``: names and their bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode, format=format) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


class Unseekable:
    """A file that zipfile can only write forward: sizes then stand behind the data."""

    def __init__(self, file):
        self._file = file

    def write(self, data):
        return self._file.write(data)

    def flush(self):
        pass


def zip_of(files, method=zipfile.ZIP_DEFLATED, *, streamed=False):
    """The same as a zip archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(Unseekable(packed) if streamed else packed, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()
