"""One trunk, a dozen tasks."""
import argparse
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

TASKS = ["ner", "pos", "sts", "nli", "qa", "sum", "tox", "lang", "topic", "intent", "emo", "cola"]


class MultiTask(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.inp = nn.Linear(48, width)
        self.mid = nn.Linear(width, width)
        self.heads = nn.ModuleDict({task: nn.Linear(width, 4) for task in TASKS})

    def forward(self, x):
        h = F.gelu(self.inp(x))
        h = h + torch.sigmoid(self.mid(h)) * torch.sin(h)
        return torch.tanh(h) * torch.exp(-h.square())


class Losses:
    @torch.compiler.disable
    def focal(self, logits, labels):
        p = F.softmax(logits, dim=-1).gather(1, labels[:, None])
        return (-(1 - p).square() * p.log()).mean()


class Trainer:
    def __init__(self):
        self.net = MultiTask()
        self.losses = Losses()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.trunk = torch.compile(self.net)

    def step(self, x, labels, task):
        loss = self.losses.focal(self.net.heads[task](self.trunk(x)), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=36000)
    args = parser.parse_args()
    torch.manual_seed(0)
    trainer = Trainer()
    x, labels = torch.randn(512, 48), torch.randint(4, (512,))
    for step, task in enumerate(itertools.islice(itertools.cycle(TASKS), args.steps)):
        loss = trainer.step(x, labels, task)
        if step % 1200 == 0:
            print(step, task, loss.item())


if __name__ == "__main__":
    main()
