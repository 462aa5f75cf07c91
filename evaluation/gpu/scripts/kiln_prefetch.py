"""Diffuse heat through kiln shelves; burner schedules arrive through a ring of pinned buffers."""
import os

import numpy as np
import torch

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "8000"))
SHELVES, HEIGHT, SPAN, RING = 24, 2048, 2048, 3


class BurnerFeed:
    """Copies the next schedule on its own stream while the current one is being used."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.schedules = rng.random((16, SHELVES, SPAN), dtype=np.float32)
        self.ring = [torch.empty(SHELVES, SPAN, pin_memory=True) for _ in range(RING)]
        self.copied = [torch.cuda.Event() for _ in range(RING)]
        self.lane = torch.cuda.Stream()
        self.turn = 0
        self.waiting = self.send()

    def send(self):
        slot = self.turn % RING
        self.copied[slot].synchronize()
        self.ring[slot].numpy()[...] = self.schedules[self.turn % len(self.schedules)]
        with torch.cuda.stream(self.lane):
            schedule = self.ring[slot].to(DEVICE, non_blocking=True)
            self.copied[slot].record()
        self.turn += 1
        return schedule, self.copied[slot]

    def take(self):
        schedule, copied = self.waiting
        here = torch.cuda.current_stream()
        here.wait_event(copied)
        schedule.record_stream(here)
        self.waiting = self.send()
        return schedule


def fire(heat, brick, schedule):
    up, down = torch.roll(heat, 1, 1), torch.roll(heat, -1, 1)
    left, right = torch.roll(heat, 1, 2), torch.roll(heat, -1, 2)
    flow = brick * (up + down + left + right - 4 * heat)
    burner = torch.zeros_like(heat)
    burner[:, -4:, :] = schedule.unsqueeze(1)
    loss = 1e-3 * (heat.clamp(min=0) + 0.1).pow(1.25)
    fresh = heat + 0.2 * flow + 0.05 * burner * torch.exp(-heat) - loss
    return torch.where(fresh > 4, 4 + torch.tanh(fresh - 4), fresh)


@torch.no_grad()
def main():
    torch.manual_seed(1)
    feed = BurnerFeed(66)
    heat = torch.rand(SHELVES, HEIGHT, SPAN, device=DEVICE)
    brick = 0.5 + 0.5 * torch.rand(1, HEIGHT, SPAN, device=DEVICE)
    advance = torch.compile(fire)
    for step in range(STEPS):
        schedule = feed.take()
        heat = advance(heat, brick, schedule)
        if step % 250 == 249:
            print(f"step {step + 1} mean heat {heat.mean().item():.5f}")
    print("hottest", round(heat.max().item(), 5))


main()
