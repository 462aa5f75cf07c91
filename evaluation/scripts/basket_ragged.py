"""Next-basket model on ragged purchase histories with EMA teacher and periodic checkpoints."""
import copy
import io
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

ITEMS, DIM, CAP = 1500, 48, 32


class BasketNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, DIM, padding_idx=0)
        self.age = nn.Embedding(CAP, DIM)
        self.score = nn.Linear(DIM, 1)
        self.body = nn.Sequential(nn.Linear(DIM, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, DIM))

    def forward(self, ids, lengths):
        pos = torch.arange(ids.shape[1])
        live = pos < lengths.unsqueeze(1)
        h = self.items(ids) + self.age(pos)
        weight = self.score(torch.tanh(h)).squeeze(-1).masked_fill(~live, float("-inf"))
        pooled = (weight.softmax(-1).unsqueeze(-1) * F.gelu(h)).sum(1)
        return self.body(pooled)


def distill_loss(student, teacher, ids, lengths, positive, negatives):
    user = student(ids, lengths)
    with torch.no_grad():
        anchor = teacher(ids, lengths)
    cand = student.items(torch.cat([positive.unsqueeze(1), negatives], 1))
    logits = torch.einsum("bd,bkd->bk", user, cand)
    target = torch.zeros(ids.shape[0], dtype=torch.long)
    return F.cross_entropy(logits, target) + 0.1 * F.mse_loss(user, anchor)


class Collate:
    """Histories of any length, padded to the model's cap."""

    def __init__(self, gen):
        self.gen = gen

    def __call__(self, batch):
        lengths = torch.tensor([len(seq) for seq in batch])
        ids = torch.zeros(len(batch), CAP, dtype=torch.long)
        for row, seq in enumerate(batch):
            ids[row, : len(seq)] = seq
        negatives = torch.randint(1, ITEMS, (len(batch), 24), generator=self.gen)
        return ids, lengths, ids[:, 0].clone(), negatives


def main():
    torch.manual_seed(0)
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(6)
    sizes = torch.randint(1, CAP + 1, (2000,), generator=gen).tolist()
    histories = [torch.randint(1, ITEMS, (n,), generator=gen) for n in sizes]
    collate = Collate(gen)

    student = BasketNet()
    teacher = copy.deepcopy(student).requires_grad_(False)
    objective = torch.compile(distill_loss)
    opt = torch.optim.AdamW(student.parameters(), lr=2e-3)

    times, saved = [], 0
    for step in range(steps):
        rows = torch.randint(0, len(histories), (64,), generator=gen).tolist()
        batch = collate([histories[r] for r in rows])
        t0 = time.perf_counter()
        loss = objective(student, teacher, *batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters()):
                slow.lerp_(fast, 0.01)
        times.append(time.perf_counter() - t0)
        if step % 80 == 79:
            blob = io.BytesIO()
            torch.save(student.state_dict(), blob)
            student.load_state_dict(torch.load(io.BytesIO(blob.getvalue())))
            saved += 1

    tail = sorted(times[len(times) // 2:])
    print(f"loss {loss.item():.4f}  checkpoints {saved}  median step {1e3 * tail[len(tail) // 2]:.2f} ms")


if __name__ == "__main__":
    main()
