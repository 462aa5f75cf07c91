"""Fits a bank of chirps to a recorded bird; a first short pass on one phrase, then all phrases."""
import argparse
import tempfile

import torch

from vocoder import Session


def phrases(amount, points=4096, voices=24):
    t = torch.linspace(0, 1, points)
    loudness = torch.rand(amount, voices)
    tones = torch.rand(amount, 1) * 150 + 60
    return loudness, torch.sin(6.2831853 * tones * t * (1 + 0.2 * t)) * torch.exp(-2 * t)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--rows", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    loudness, sound = phrases(64)
    with tempfile.TemporaryDirectory() as folder:
        Session(folder, fast=False).save()
        session = Session(folder)
        for step in range(args.steps):
            rows = torch.randint(len(sound), (args.rows,))
            loss = session.learn(loudness[rows].reshape(args.rows, -1), sound[rows])
            if step % 500 == 0:
                print(f"{session.done:6d}  {loss.item():.4f}")
                session.save()


if __name__ == "__main__":
    main()
