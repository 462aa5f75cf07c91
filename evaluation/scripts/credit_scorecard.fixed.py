"""Default probability for a loan book: a cross network on the raw attributes.

The book is read column by column (that is how the warehouse exports it) and
stays resident with the model; a training step draws a set of loan ids.
"""
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_LOANS = 400_000
BATCH = 4096


def read_columns(n: int, seed: int = 9) -> dict:
    rng = np.random.default_rng(seed)
    cols = {
        "income": rng.lognormal(10.3, 0.5, n),
        "amount": rng.lognormal(9.4, 0.7, n),
        "age": rng.uniform(19, 80, n),
        "tenure": rng.exponential(6.0, n),
        "utilisation": rng.beta(2, 5, n),
        "inquiries": rng.poisson(1.3, n).astype(np.float64),
        "delinquencies": rng.poisson(0.4, n).astype(np.float64),
        "rate": rng.normal(0.07, 0.02, n),
    }
    for k in range(56):
        cols[f"bureau_{k:02d}"] = rng.normal(0.0, 1.0 + 0.02 * k, n)
    return {k: v.astype(np.float32) for k, v in cols.items()}


def make_target(cols: dict, seed: int = 10) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = (2.0 * cols["utilisation"] + 0.6 * cols["delinquencies"] + 12 * cols["rate"]
         - 0.00002 * cols["income"] + 0.3 * cols["bureau_03"] * cols["bureau_11"] - 2.4)
    return (rng.uniform(size=z.size) < 1 / (1 + np.exp(-z))).astype(np.float32)


class Scorecard(nn.Module):
    def __init__(self, book: np.ndarray, target: np.ndarray, cross_layers: int = 2):
        super().__init__()
        width = book.shape[1]
        self.register_buffer("book", torch.from_numpy(book), persistent=False)
        self.register_buffer("target", torch.from_numpy(target), persistent=False)
        self.register_buffer("shift", torch.from_numpy(book.mean(axis=0)))
        self.register_buffer("spread", torch.from_numpy(book.std(axis=0) + 1e-6))
        self.cross = nn.ModuleList([nn.Linear(width, 1, bias=False) for _ in range(cross_layers)])
        self.out = nn.Linear(width, 1)

    def forward(self, loan_ids: torch.Tensor) -> torch.Tensor:
        x = (self.book[loan_ids] - self.shift) / self.spread
        x = torch.sign(x) * torch.log1p(x.abs())
        c = x
        for layer in self.cross:
            c = x * layer(c) + c
        logit = self.out(c).squeeze(-1)
        return F.binary_cross_entropy_with_logits(logit, self.target[loan_ids])


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(0)
    cols = read_columns(N_LOANS)
    target = make_target(cols)
    book = np.stack([cols[name] for name in sorted(cols)], axis=1)
    model = Scorecard(book, target)
    loss_fn = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    recent = []
    for _ in range(steps):
        loan_ids = torch.randint(0, N_LOANS, (BATCH,))
        loss = loss_fn(loan_ids)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        recent = (recent + [loss.detach()])[-50:]

    print(f"{steps} steps on {N_LOANS} loans x {book.shape[1]} attributes, "
          f"log loss {float(torch.stack(recent).mean()):.4f}, bad rate {float(target.mean()):.3f}")


if __name__ == "__main__":
    main()
