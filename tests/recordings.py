"""Recorded runs: where they lie, and how one is unpacked."""

import tarfile
from pathlib import Path

RUNS = Path(__file__).resolve().parents[1] / "fixtures" / "runs"


def unpack(name, folder):
    """The run folder of a recorded run, unpacked below ``folder``."""
    unpack_archive(RUNS / f"{name}.tar.xz", folder)
    return Path(folder) / "run"


def unpack_archive(path, folder):
    """What one of our own archives holds, below ``folder``."""
    with tarfile.open(path) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:  # Python before 3.10.12 and 3.11.4
            archive.extractall(folder)
