"""Soft-prompt tuning of a frozen ticket classifier (8 routing queues).

Only the prompt vectors move; the encoder was trained elsewhere.
"""
import os
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Setup:
    vocab: int = 36000
    width: int = 128
    heads: int = 4
    layers: int = 2
    queues: int = 8
    prompt_len: int = 12
    ticket_len: int = 36
    batch: int = 8
    steps: int = int(os.environ.get("STEPS", "1000"))
    warmup: int = 15
    lr: float = 0.3


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_a = nn.LayerNorm(width)
        self.norm_b = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, h):
        b, t, w = h.shape
        q, k, v = (
            p.view(b, t, self.heads, w // self.heads).transpose(1, 2)
            for p in self.qkv(self.norm_a(h)).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v)
        h = h + self.out(mixed.transpose(1, 2).reshape(b, t, w))
        return h + self.down(F.relu(self.up(self.norm_b(h))))


class TicketEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.words = nn.Embedding(cfg.vocab, cfg.width)
        self.where = nn.Parameter(0.02 * torch.randn(cfg.prompt_len + cfg.ticket_len, cfg.width))
        self.blocks = nn.ModuleList(Block(cfg.width, cfg.heads) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.width)
        self.queue = nn.Linear(cfg.width, cfg.queues)

    def forward(self, prompt, tokens):
        lead = prompt.unsqueeze(0).expand(tokens.shape[0], -1, -1)
        h = torch.cat([lead, self.words(tokens)], dim=1) + self.where
        for block in self.blocks:
            h = block(h)
        return self.queue(self.norm(h).mean(dim=1))


class PromptTuner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.encoder = TicketEncoder(cfg).eval().requires_grad_(False)
        self.prompt = (0.1 * torch.randn(cfg.prompt_len, cfg.width)).requires_grad_()
        self.moment = torch.zeros_like(self.prompt)
        self.loss = torch.compile(self._loss)

    def _loss(self, prompt, tokens, target):
        return F.cross_entropy(self.encoder(prompt, tokens), target)

    def step(self, tokens, target):
        loss = self.loss(self.prompt, tokens, target)
        (slope,) = torch.autograd.grad(loss, (self.prompt,))
        with torch.no_grad():
            self.moment.mul_(0.9).add_(slope)
            self.prompt.sub_(self.moment, alpha=self.cfg.lr)
        return loss.detach()


def tickets(cfg, count):
    gen = torch.Generator().manual_seed(3)
    for _ in range(count):
        tokens = torch.randint(0, cfg.vocab, (cfg.batch, cfg.ticket_len), generator=gen)
        target = tokens[:, 0] % cfg.queues // 2
        yield tokens, target


def main():
    torch.manual_seed(21)
    cfg = Setup()
    tuner = PromptTuner(cfg)
    for tokens, target in tickets(cfg, cfg.warmup):
        tuner.step(tokens, target)

    batches = list(tickets(cfg, 64))
    running = None
    start = time.perf_counter()
    for i in range(cfg.steps):
        loss = tuner.step(*batches[i % len(batches)]).item()
        running = loss if running is None else 0.98 * running + 0.02 * loss
        if i % 250 == 0:
            print(f"{i:5d}  loss {running:.4f}")
    spent = time.perf_counter() - start
    print(f"last   loss {running:.4f}   {1e3 * spent / cfg.steps:.3f} ms/step")


if __name__ == "__main__":
    main()
