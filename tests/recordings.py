"""Recorded runs: where they lie, and how one is unpacked."""

import tarfile
from pathlib import Path

RUNS = Path(__file__).resolve().parents[1] / "fixtures" / "runs"


def unpack(name, folder):
    """The run folder of a recorded run, unpacked below ``folder``."""
    with tarfile.open(RUNS / f"{name}.tar.xz") as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:  # Python before 3.10.12 and 3.11.4
            archive.extractall(folder)
    return Path(folder) / "run"
