"""Sample melodies, many at once, from a small recurrent-mixing model."""
import os
import time

import torch
import torch.nn as nn

NOTES = int(os.environ.get("NOTES", "2400"))
BATCH = 64
VOCAB = 131072
DIM = 256
LAYERS = 8
DEV = "cuda"


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.inp = nn.Linear(DIM, 2 * DIM)
        self.out = nn.Linear(DIM, DIM)

    def forward(self, x, state):
        h, g = self.inp(self.norm(x)).chunk(2, -1)
        state = torch.lerp(state, torch.tanh(h), torch.sigmoid(g))
        return x + self.out(state * torch.sigmoid(x)), state


class Melody(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList([Mixer() for _ in range(LAYERS)])
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, note, states):
        x = self.embed(note)
        fresh = []
        for layer, s in zip(self.layers, states.unbind(0)):
            x, s = layer(x, s)
            fresh.append(s)
        return self.head(x).float(), torch.stack(fresh)


def pick(logits, generator):
    logits = logits.to(generator.device)
    top, idx = logits.topk(40, dim=-1)
    choice = torch.multinomial(torch.softmax(top / 0.9, -1), 1, generator=generator)
    return idx.gather(1, choice).squeeze(1)


@torch.no_grad()
def main():
    torch.manual_seed(12)
    net = Melody().to(DEV, torch.bfloat16).eval()
    fn = torch.compile(net)
    gen = torch.Generator(device=DEV).manual_seed(7)
    note = torch.zeros(BATCH, dtype=torch.long, device=DEV)
    states = torch.zeros(LAYERS, BATCH, DIM, device=DEV, dtype=torch.bfloat16)
    t0 = time.time()
    for n in range(NOTES):
        logits, states = fn(note, states)
        note = pick(logits, gen).to(DEV)
        if n % 200 == 0:
            print(f"note {n}: {note[:6].tolist()} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
