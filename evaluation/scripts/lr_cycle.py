"""Short one-cycle fine-tune of a keyword spotter head on log-mel features."""
import os
import time

import torch
import torch.nn as nn

MELS = 40
FRAMES = 24
WORDS = 12
BATCH = 64


class SpotterHead(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.mix = nn.Linear(MELS * FRAMES, width)
        self.norm = nn.LayerNorm(width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, WORDS)

    def forward(self, x):
        h = torch.relu(self.norm(self.mix(x.flatten(1))))
        h = h + torch.relu(self.mid(h))
        return self.out(h)


class Corpus:
    def __init__(self, clips=1500, seed=8):
        gen = torch.Generator().manual_seed(seed)
        proto = torch.randn(WORDS, MELS, FRAMES, generator=gen)
        self.labels = torch.randint(0, WORDS, (clips,), generator=gen)
        noise = torch.randn(clips, MELS, FRAMES, generator=gen)
        self.clips = proto[self.labels] + 1.5 * noise
        self.gen = gen

    def batch(self):
        pick = torch.randint(0, len(self.labels), (BATCH,), generator=self.gen)
        return self.clips[pick], self.labels[pick]


def build(net, steps):
    lr = torch.tensor(1e-3)
    opt = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=0.02)
    sched = torch.optim.lr_scheduler.OneCycleLR(
        opt, max_lr=4e-3, total_steps=steps + 1, pct_start=0.3
    )
    return opt, sched


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))

    net = SpotterHead()
    corpus = Corpus()
    opt, sched = build(net, steps)

    @torch.compile(fullgraph=False)
    def update():
        opt.step()

    t_start = time.perf_counter()
    times, hits = [], []
    for step in range(steps):
        x, y = corpus.batch()
        t0 = time.perf_counter()
        logits = net(x)
        loss = nn.functional.cross_entropy(logits, y, label_smoothing=0.05)
        loss.backward()
        update()
        sched.step()
        opt.zero_grad()
        times.append(time.perf_counter() - t0)
        hits.append((logits.argmax(1) == y).float().mean().detach())

    total = time.perf_counter() - t_start
    late = sorted(times[len(times) // 2:])
    print(f"accuracy {torch.stack(hits[-20:]).mean():.3f}  run {total:.2f} s")
    print(f"median step {late[len(late) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
