"""File names as a reader knows them: seen from where the run was started."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from traceview.diagnosis.model import Diagnosis


def near(file: str, diagnosis: Diagnosis) -> str:
    """``file`` as seen from the target's working directory, its script or an installed package."""
    for folder in folders(diagnosis):
        if file.startswith(folder + "/"):
            return file[len(folder) + 1 :]
    return file.rpartition("/site-packages/")[2] or file


def folders(diagnosis: Diagnosis) -> Iterable[str]:
    """The working directory, then the folder of a script that was named by its whole path."""
    argv = diagnosis.environment.get("argv")
    script = argv[0] if isinstance(argv, list) and argv else diagnosis.target
    places = (diagnosis.environment.get("cwd"), PurePosixPath(str(script)).parent)
    return [name for place in places if len(name := str(place or "").rstrip("/")) > 1]
