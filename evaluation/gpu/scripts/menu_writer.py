"""Sample recipe text with a gated linear-recurrence language model."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "10000"))
STREAMS = 16
VOCAB = 8192
DIM = 4096
LAYERS = 10
TEMPERATURE = 0.9

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.inp = nn.Linear(DIM, 3 * DIM, bias=False)
        self.mix = nn.Linear(DIM, DIM, bias=False)
        self.ff = nn.Linear(DIM, 2 * DIM, bias=False)

    def forward(self, x, h):
        z, c, o = self.inp(self.norm(x)).chunk(3, dim=-1)
        z = torch.sigmoid(z.float())
        h = torch.lerp(h, torch.tanh(c.float()), z)
        x = x + self.mix(h * torch.sigmoid(o))
        a, b = self.ff(x).chunk(2, dim=-1)
        return x + F.silu(a) * b * 0.1, h


class RecipeLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.cells = nn.ModuleList(Cell() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        self.unembed = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, tokens, state):
        x = self.embed(tokens)
        new_state = []
        for i, cell in enumerate(self.cells):
            x, h = cell(x, state[i])
            new_state.append(h)
        return self.unembed(self.norm(x)), torch.stack(new_state)


def pick(logits):
    gumbel = -torch.empty_like(logits, dtype=torch.float32).exponential_().log()
    return (logits.float() / TEMPERATURE + gumbel).argmax(-1)


def generate():
    torch.manual_seed(77)
    with torch.device(device):
        model = RecipeLM()
    model.eval()
    decode = torch.compile(model)

    tokens = torch.randint(0, VOCAB, (STREAMS,), device=device)
    state = torch.zeros(LAYERS, STREAMS, DIM, device=device)
    histogram = torch.zeros(VOCAB, device=device)

    with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
        for _ in range(4):
            logits, state = decode(tokens, state)
            tokens = pick(logits)
        if device == "cuda":
            torch.cuda.synchronize()

        t0 = time.perf_counter()
        for step in range(STEPS):
            logits, state = decode(tokens, state)
            tokens = pick(logits)
            histogram[tokens] += 1
            if step % 2000 == 0:
                print(f"token {step}: {tokens[:6].tolist()}")
        if device == "cuda":
            torch.cuda.synchronize()
        dt = time.perf_counter() - t0
    print(f"{STREAMS * STEPS / dt:.0f} tokens/s, {dt / STEPS * 1e3:.3f} ms per position")
    print("distinct tokens:", int((histogram > 0).sum()))


if __name__ == "__main__":
    generate()
