"""Next-track ranking: a two-tower scorer over user, track and context features."""
import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Listens(Dataset):
    def __init__(self, n, users, tracks, seed):
        g = torch.Generator().manual_seed(seed)
        self.user = torch.randint(0, users, (n,), generator=g)
        self.track = (torch.rand(n, generator=g) ** 3 * tracks).long()
        self.other = (torch.rand(n, generator=g) ** 3 * tracks).long()
        self.context = torch.randn(n, 6, generator=g)

    def __len__(self):
        return self.user.shape[0]

    def __getitem__(self, i):
        return {
            "user": self.user[i],
            "track": self.track[i],
            "other": self.other[i],
            "context": self.context[i],
        }


class Towers(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(dim + 6, 128), nn.SiLU(), nn.Linear(128, dim))
        self.item = nn.Sequential(nn.Linear(dim, 128), nn.SiLU(), nn.Linear(128, dim))

    def forward(self, user, context, good, bad):
        q = nn.functional.normalize(self.query(torch.cat([user, context], 1)), dim=1)
        up = (q * nn.functional.normalize(self.item(good), dim=1)).sum(1)
        down = (q * nn.functional.normalize(self.item(bad), dim=1)).sum(1)
        return nn.functional.softplus(6.0 * (down - up)).mean()


class Ranker:
    def __init__(self, users, tracks, dim=32):
        self.users = nn.Embedding(users, dim)
        self.tracks = nn.Embedding(tracks, dim)
        self.towers = Towers(dim)
        self.score = torch.compile(self.towers)
        self.opts = [
            torch.optim.Adam([self.users.weight, self.tracks.weight], lr=2e-3, fused=True),
            torch.optim.Adam(self.towers.parameters(), lr=1e-3, fused=True),
        ]

    def update(self, b):
        loss = self.score(
            self.users(b["user"]), b["context"], self.tracks(b["track"]), self.tracks(b["other"])
        )
        loss.backward()
        for opt in self.opts:
            opt.step()
            opt.zero_grad(set_to_none=True)
        return loss.detach()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1500)
    ap.add_argument("--batch", type=int, default=512)
    args = ap.parse_args()

    torch.manual_seed(0)
    data = Listens(args.batch * 250, 60_000, 120_000, 3)
    ranker = Ranker(60_000, 120_000)
    done, running, began = 0, torch.zeros(()), time.perf_counter()
    while done < args.steps:
        for batch in DataLoader(data, batch_size=args.batch, shuffle=True, drop_last=True):
            running += ranker.update(batch)
            done += 1
            if done % 100 == 0:
                print(f"{done}: {running.item() / 100:.4f} {time.perf_counter() - began:.1f} s")
                running.zero_()
            if done == args.steps:
                break


if __name__ == "__main__":
    main()
