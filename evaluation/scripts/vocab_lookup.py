"""Masks special tokens and builds position features for tiny batches."""
import os
import time
import torch

torch.manual_seed(23)

WORDS = 200_000
BATCH, LEN = 8, 64
CALLS = 80_000
CALLS = int(os.environ.get("CALLS", CALLS))


def build_vocab(n):
    vocab = {"<pad>": 0, "<bos>": 1, "<eos>": 2, "<unk>": 3}
    for i in range(4, n):
        vocab[f"w{i:06d}"] = i
    return vocab


def features(ids, vocab, scale):
    pad = vocab["<pad>"]
    real = ids != pad
    pos = real.cumsum(1) * real
    f = torch.sin(pos * scale) + torch.cos(pos * scale * 0.5)
    f = f * real
    return f / real.sum(1, keepdim=True).clamp(min=1), pos.amax(1)


class Corpus:
    def __init__(self, n):
        self.rows = torch.randint(4, WORDS, (n, BATCH, LEN))
        lens = torch.randint(8, LEN, (n, BATCH, 1))
        self.rows[torch.arange(LEN) >= lens.expand(-1, -1, LEN)] = 0

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, k):
        return self.rows[k % len(self.rows)]


def main():
    vocab = build_vocab(WORDS)
    corpus = Corpus(50)
    scale = torch.tensor(0.1)
    fn = torch.compile(features)
    lap = []
    acc, longest = 0.0, 0
    for k in range(CALLS):
        ids = corpus[k]
        t0 = time.perf_counter()
        f, ln = fn(ids, vocab, scale)
        lap.append(time.perf_counter() - t0)
        acc += f.sum().item()
        longest = max(longest, int(ln.max()))
        if k % 20_000 == 0:
            print(f"batch {k:5d} acc {acc:.4f}")
    lap = sorted(lap[CALLS // 2:])
    print(f"longest {longest}, checksum {acc:.3f}")
    print(f"median call {lap[len(lap) // 2] * 1e3:.4f} ms")


if __name__ == "__main__":
    main()
