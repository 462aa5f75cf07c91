"""Fits many sail profiles at once with a compiled optimiser and a warm-up schedule."""
import argparse
import math

import torch

DEVICE = torch.device("cuda")


class Profiles(torch.nn.Module):
    def __init__(self, sails, harmonics):
        super().__init__()
        self.amplitude = torch.nn.ParameterList(
            torch.nn.Parameter(0.1 * torch.randn(sails, device=DEVICE)) for _ in range(harmonics))
        self.phase = torch.nn.ParameterList(
            torch.nn.Parameter(torch.zeros(sails, device=DEVICE)) for _ in range(harmonics))

    def forward(self, s):
        height = torch.zeros(s.shape[0], self.amplitude[0].shape[0], device=s.device)
        for k, (a, p) in enumerate(zip(self.amplitude, self.phase), start=1):
            height = height + a * torch.sin(math.pi * k * s[:, None] + p)
        return height


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=6000)
    args = ap.parse_args()
    torch.manual_seed(4)
    model = Profiles(sails=2000, harmonics=24)
    rate = torch.tensor(1e-4, device=DEVICE)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, capturable=True, foreach=True)
    s = torch.linspace(0, 1, 200, device=DEVICE)
    measured = 0.2 * torch.sin(math.pi * s)[:, None] * torch.rand(2000, device=DEVICE)

    @torch.compile
    def update():
        optimiser.step()

    @torch.compile
    def misfit():
        return (model(s) - measured).square().mean()

    for step in range(args.steps):
        optimiser.zero_grad(set_to_none=False)
        loss = misfit()
        loss.backward()
        update()
        if step % 100 == 0:
            rate.fill_(1e-3 * min(1.0, (step + 100) / 1000))
        if step % 1000 == 0:
            print(f"step {step:5d} misfit {loss.item():.6f}")


if __name__ == "__main__":
    main()
