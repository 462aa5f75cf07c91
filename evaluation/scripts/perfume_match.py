"""Learn prototype accords for perfume samples from noisy gas-sensor profiles.

Prototypes are compared with every sample, channel by channel, under a
learned per-channel weight; an averaged copy of the weights is kept.
"""
import os
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(91)

STEPS = int(os.environ.get("STEPS", "10000"))
SAMPLES = 768
CHANNELS = 48
ACCORDS = 128


class AccordBank(nn.Module):
    def __init__(self, accords, channels):
        super().__init__()
        self.protos = nn.Parameter(torch.randn(accords, channels))
        self.log_weight = nn.Parameter(torch.zeros(channels))
        self.temperature = nn.Parameter(torch.tensor(0.0))

    def distances(self, x):
        gap = x[:, None, :] - self.protos[None, :, :]
        soft = torch.sqrt(gap * gap + 1e-3) - 0.03
        return (soft * torch.exp(self.log_weight)).sum(-1)

    def forward(self, x):
        return -self.distances(x) * torch.exp(-self.temperature)


def loss_fn(model, x, y):
    logits = model(x)
    nll = F.cross_entropy(logits, y)
    spread = torch.logsumexp(-logits, dim=0).mean()
    return nll + 1e-3 * spread


class Averager:
    def __init__(self, model, decay=0.99):
        self.shadow = copy.deepcopy(model)
        for p in self.shadow.parameters():
            p.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


def make_profiles(n_batches):
    truth = torch.randn(ACCORDS, CHANNELS)
    out = []
    for _ in range(n_batches):
        y = torch.randint(0, ACCORDS, (SAMPLES,))
        x = truth[y] + 0.4 * torch.randn(SAMPLES, CHANNELS)
        out.append((x, y))
    return out


def main():
    bank = AccordBank(ACCORDS, CHANNELS)
    avg = Averager(bank)
    opt = torch.optim.Adam(bank.parameters(), lr=3e-3)
    step_loss = torch.compile(loss_fn)
    profiles = make_profiles(16)

    history = []
    for step in range(STEPS):
        x, y = profiles[step % len(profiles)]
        loss = step_loss(bank, x, y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(bank.parameters(), 5.0)
        opt.step()
        avg.update(bank)
        history.append(loss.item())
        if step % 1000 == 0:
            print(f"{step:6d} loss {sum(history[-50:]) / len(history[-50:]):.4f}")

    x, y = profiles[0]
    with torch.no_grad():
        hit = (avg.shadow(x).argmax(1) == y).float().mean().item()
    print(f"averaged model accuracy {hit:.3f}")


if __name__ == "__main__":
    main()
