"""Fit a small synthesiser to reference timbres."""
import argparse

import torch
import torch.nn.functional as F

from timbre import Damped, LevelMeter, Synth


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=8000)
    args = parser.parse_args()
    torch.manual_seed(0)
    synth = Synth()
    meter = LevelMeter().attach(synth)
    play = torch.compile(synth)
    optimizer = Damped(synth.parameters(), lr=2e-4)
    notes, reference = torch.randn(4, 64, 32), 0.3 * torch.randn(4, 64, 512)
    for step in range(args.steps):
        loss = F.l1_loss(play(notes[step % 4]), reference[step % 4])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(step, f"{float(loss):.4f}", f"loudest {meter.loudest:.2f}")


if __name__ == "__main__":
    main()
