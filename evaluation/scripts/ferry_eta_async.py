"""Answers arrival questions for a ferry line from an asyncio queue, one coroutine per harbour."""
import os
import asyncio
import time
import torch
import torch.nn as nn

torch.manual_seed(22)

HARBOURS = 3


class Crossing(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.inward = nn.Linear(32, width)
        self.swell = nn.Parameter(torch.rand(4, width))
        self.norm = nn.LayerNorm(width)
        self.minutes = nn.Linear(width, 1)

    def forward(self, reports):
        h = self.inward(reports)
        for row in self.swell:
            h = h + torch.tanh(h * row) * torch.sigmoid(h) + 0.05 * torch.cos(h * row)
        return nn.functional.softplus(self.minutes(self.norm(h))).squeeze(-1)


model = Crossing().eval().requires_grad_(False)


@torch.compile
async def estimate(reports):
    eta = model(reports)
    return eta.mean(), eta.amax()


async def harbour(name, queue, book):
    while True:
        reports = await queue.get()
        if reports is None:
            return
        mean, worst = await estimate(reports)
        book.append((name, mean.item(), worst.item()))
        await asyncio.sleep(0)


async def line(total):
    queue, book = asyncio.Queue(maxsize=8), []
    crew = [asyncio.create_task(harbour(h, queue, book)) for h in range(HARBOURS)]
    start = time.time()
    for n in range(int(os.environ.get("STEPS", str(total)))):
        await queue.put(torch.randn(512, 32))
        if n % 1000 == 999:
            recent = book[-100:]
            print(f"{n + 1} asked  mean eta {sum(b[1] for b in recent) / len(recent):.3f}  "
                  f"worst {max(b[2] for b in recent):.3f}  {time.time() - start:.1f}s")
    for _ in crew:
        await queue.put(None)
    await asyncio.gather(*crew)


if __name__ == "__main__":
    asyncio.run(line(10000))
