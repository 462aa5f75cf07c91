"""Draw texture tiles with a small diffusion network and classifier-free guidance."""
import contextlib
import math
import os

import torch
from torch import nn
from torch.nn import functional as F

TILES = int(os.environ.get("TILES", "120"))
STEPS = 50
SIZE = 32


class Res(nn.Module):
    def __init__(self, width, time_width):
        super().__init__()
        self.a = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.b = nn.Conv2d(width, width, 1)
        self.film = nn.Linear(time_width, 2 * width)
        self.norm = nn.GroupNorm(4, width)

    def forward(self, x, t):
        shift, scale = self.film(t)[:, :, None, None].chunk(2, 1)
        h = F.silu(self.norm(x) * (1 + scale) + shift)
        h = self.b(F.gelu(self.a(h)))
        return x + h * torch.sigmoid(h) + 0.1 * torch.sin(h)


class Tiler(nn.Module):
    def __init__(self, width=24, depth=4, kinds=8, time_width=64):
        super().__init__()
        self.freqs = nn.Buffer(torch.exp(-math.log(1e4) * torch.arange(time_width // 2) / (time_width // 2)))
        self.kind = nn.Embedding(kinds + 1, time_width)
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(Res(width, time_width) for _ in range(depth))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t, kind):
        if not torch.compiler.is_compiling():
            print("eager call with", tuple(x.shape))
        angle = t[:, None] * self.freqs
        t = torch.cat([angle.sin(), angle.cos()], 1) + self.kind(kind)
        h = self.first(x)
        for block in self.blocks:
            h = block(h, t)
        return self.last(h)


@contextlib.contextmanager
def sampling(model):
    was = model.training
    model.eval()
    with torch.inference_mode():
        yield
    model.train(was)


class Sampler:
    def __init__(self, model, guidance=3.0):
        self.model, self.guidance = model, guidance
        self.noise = torch.linspace(0.999, 0.01, STEPS)
        self.predict = torch.compile(self._predict)

    def _predict(self, x, level, kind):
        both = torch.cat([x, x])
        none = torch.full_like(kind, 8)
        guess, plain = self.model(both, (level * 1000).expand(both.shape[0]), torch.cat([kind, none])).chunk(2)
        guess = plain + self.guidance * (guess - plain)
        clean = ((x - level.sqrt() * guess) / (1 - level).sqrt()).clamp(-1.5, 1.5)
        return clean, guess

    def frames(self, kind):
        x = torch.randn(kind.shape[0], 3, SIZE, SIZE)
        for now, after in zip(self.noise, self.noise[1:]):
            clean, guess = self.predict(x, now, kind)
            x = (1 - after).sqrt() * clean + after.sqrt() * guess
            yield clean


torch.manual_seed(7)
tiler = Tiler()
sampler = Sampler(tiler)
with sampling(tiler):
    for tile in range(TILES):
        for frame in sampler.frames(torch.randint(0, 8, (4,))):
            pass
        if tile % 10 == 9:
            print(f"{tile + 1} tiles, spread {frame.std().item():.3f}")
