"""Count fish that pass a ladder, from short clips of an underwater camera."""
import argparse
import pathlib
import tempfile

import torch

from ladder.archive import record
from ladder.clips import ClipFolder
from ladder.network import PassageNet
from ladder.train import Trainer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--batch", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        record(folder, days=4, clips=24)
        loader = torch.utils.data.DataLoader(ClipFolder(folder), args.batch, shuffle=True, drop_last=True)
        Trainer(PassageNet()).run(loader, args.steps)


if __name__ == "__main__":
    main()
