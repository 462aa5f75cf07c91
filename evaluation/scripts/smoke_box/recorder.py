import pathlib
import tempfile

import numpy as np


class Recorder:
    """Keeps the last frames of a run on disk, to look at or to go on from."""

    def __init__(self, keep=10):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="smoke"))
        self.keep = keep

    def __call__(self, n, box):
        np.savez_compressed(self.folder / f"frame{n % self.keep}.npz", smoke=box.smoke.numpy(), heat=box.heat.numpy())

    def close(self):
        for file in self.folder.iterdir():
            file.unlink()
        self.folder.rmdir()
