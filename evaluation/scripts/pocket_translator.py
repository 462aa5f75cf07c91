"""A phrase translator that keeps its matrices in grouped 8-bit form and expands them as it goes."""
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

GROUP = 32


class PackedLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        weight = torch.randn(n_out, n_in) / n_in ** 0.5
        grouped = weight.view(n_out, n_in // GROUP, GROUP)
        low, high = grouped.amin(-1), grouped.amax(-1)
        step = (high - low) / 255.0
        code = ((grouped - low[..., None]) / step[..., None]).round().clamp(0, 255)
        self.register_buffer("code", code.to(torch.uint8).view(n_out, n_in))
        self.register_buffer("step", step)
        self.register_buffer("low", low)

    def forward(self, x):
        code = self.code.view(self.code.shape[0], -1, GROUP)
        return F.linear(x, (code * self.step[..., None] + self.low[..., None]).view_as(self.code))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = PackedLinear(width, 2 * width)
        self.back = PackedLinear(width, width)

    def forward(self, x):
        a, b = self.gate(self.norm(x)).chunk(2, -1)
        return x + self.back(F.silu(a) * b)


class Translator(nn.Module):
    def __init__(self, vocab=3000, width=384):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(3)])
        self.out = PackedLinear(width, vocab)

    def forward(self, phrase):
        h = self.embed(phrase)
        for block in self.blocks:
            h = block(h)
        return self.out(h.mean(1)).argmax(-1)


def main():
    model = Translator().eval()
    translate = torch.compile(model)
    seen = set()
    start = time.time()
    with torch.inference_mode():
        for n in range(int(os.environ.get("STEPS", "6000"))):
            phrase = torch.randint(0, 3000, (1, 8))
            seen.add(translate(phrase).item())
            if n % 600 == 599:
                print(f"{n + 1:4d} phrases  {len(seen)} different words  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
