"""Block-adaptive echo canceller: far-end history ring, normalised LMS taps adapted on the fly."""
import os
import torch
from torch import nn

BLOCK, TAPS, CHANNELS = 64, 48, 48
STEPS = int(os.environ.get("STEPS", "24000"))


@torch.library.custom_op("echo::push", mutates_args=())
def push(history: torch.Tensor, block: torch.Tensor) -> None:
    keep = history[:, :-1].clone()
    history[:, 1:] = keep
    history[:, 0] = block


@push.register_fake
def _(history, block):
    return None


def far_end(step, gen):
    t = torch.arange(BLOCK) + step * BLOCK
    base = torch.sin(t * 0.031) * (0.6 + 0.4 * torch.sin(t * 0.0007))
    return base + 0.3 * torch.randn(CHANNELS, BLOCK, generator=gen)


class Canceller(nn.Module):
    def __init__(self, rate=0.3):
        super().__init__()
        self.rate = rate
        self.register_buffer("history", torch.zeros(CHANNELS, TAPS, BLOCK))
        self.register_buffer("filters", torch.zeros(CHANNELS, TAPS, BLOCK))

    def forward(self, far, mic):
        floor = 0.05 * self.history.abs().mean((1, 2), keepdim=True)
        push(self.history, far)
        window = torch.tanh(self.history) * torch.sigmoid(8.0 * (self.history.abs() - floor) + 2.0)
        echo = (self.filters * window).sum(1)
        residual = mic - echo
        norm = 0.5 + window.square().sum(1)
        self.filters.add_(self.rate * (residual / norm)[:, None] * window)
        self.filters.mul_(1.0 - 1e-5 * torch.exp(-self.filters.square()))
        return residual, floor.flatten() * 20


def room(gen):
    decay = torch.exp(-torch.arange(TAPS) / 6.0)
    return 0.4 * decay * torch.randn(CHANNELS, 1, TAPS, generator=gen)


@torch.no_grad()
def main():
    gen = torch.Generator().manual_seed(17)
    canceller = Canceller()
    run = torch.compile(canceller)
    path = room(gen)
    line = torch.zeros(CHANNELS, TAPS, BLOCK)
    smooth = 1.0
    for step in range(STEPS):
        far = far_end(step, gen)
        line = torch.cat((torch.tanh(far)[:, None], line[:, :-1]), 1)
        mic = (path @ line).squeeze(1)
        residual, level = run(far, mic)
        ratio = residual.square().mean() / mic.square().mean().clamp_min(1e-6)
        smooth = 0.99 * smooth + 0.01 * ratio.item()
        if step % 1200 == 0:
            print(f"block {step:5d}  residual/echo {smooth:.4f}  history level {level.mean().item():.3f}")
    print(f"end residual/echo {smooth:.4f}")


if __name__ == "__main__":
    main()
