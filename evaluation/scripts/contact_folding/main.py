import json
from pathlib import Path

import torch

from folding.training import Fold
from folding.trunk import Trunk

if __name__ == "__main__":
    import sys

    settings = json.loads((Path(__file__).parent / "folding.json").read_text())
    if len(sys.argv) > 1:
        settings["steps"] = int(sys.argv[1])
    torch.manual_seed(settings["seed"])
    trunk = Trunk(settings["width"], settings["blocks"])
    for block in trunk.blocks:
        block.compile(fullgraph=True)
    Fold(trunk, settings).train()
