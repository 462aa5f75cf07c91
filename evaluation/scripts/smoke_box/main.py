"""Smoke that rises in a closed box."""
import contextlib
import os

import torch

from recorder import Recorder
from solver import SmokeBox


def main(frames=int(os.environ.get("SMOKE_FRAMES", 12000)), side=256, callbacks=None):
    torch.manual_seed(0)
    with contextlib.closing(Recorder()) as recorder, torch.inference_mode():
        box = SmokeBox(side)
        leaked = 0
        for n in range(frames):
            leaked += box.step()
            for call in (recorder, *(callbacks or ())):
                call(n, box)
        print(f"{frames} frames, {leaked} leaks, {box.smoke.mean().item():.4f} smoke")


if __name__ == "__main__":
    main()
