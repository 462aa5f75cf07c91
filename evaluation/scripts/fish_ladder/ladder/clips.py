import numpy as np
import torch


class ClipFolder(torch.utils.data.Dataset):
    """All clips of all days."""

    def __init__(self, folder):
        self.index = []
        for file in sorted(folder.glob("day*.npz")):
            with np.load(file) as day:
                self.index += [(file, n) for n in range(len(day["counts"]))]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        file, n = self.index[i]
        with np.load(file) as day:
            frames, count = day["frames"][n], day["counts"][n]
        return torch.from_numpy(frames).float().div_(255), torch.tensor(float(count))
