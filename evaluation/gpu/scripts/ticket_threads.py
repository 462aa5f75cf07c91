"""Support-ticket router: raw ticket text is hashed into word and character n-gram ids while the
network trains, so that the corpus never has to be stored in tokenised form."""
import os
import random
import time
import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
BATCH, LENGTH = (4, 32) if SMALL else (64, 256)
DIM, LAYERS = (64, 2) if SMALL else (512, 4)
BUCKETS, QUEUES = 1 << 15, 24
READERS, AHEAD = 4, 12
WORDS = ("login invoice refund crash printer vpn password shipping broken late account delete "
         "upgrade licence router screen keyboard urgent payment card email bounce slow error").split()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def read_batch(seed):
    rng = random.Random(seed)
    ids = np.zeros((BATCH, LENGTH), dtype=np.int64)
    label = np.zeros(BATCH, dtype=np.int64)
    for b in range(BATCH):
        words = rng.choices(WORDS, k=LENGTH // 2)
        label[b] = WORDS.index(words[0])
        row = []
        for a, w in zip([""] + words, words):
            row.append(zlib.crc32(w.encode()) % BUCKETS)
            row.append(zlib.crc32((a + "_" + w).lower().encode()) % BUCKETS)
        ids[b, : len(row)] = row[:LENGTH]
    return ids, label


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(BUCKETS, DIM)
        block = nn.TransformerEncoderLayer(DIM, 8, 4 * DIM, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False)
        self.out = nn.Linear(DIM, QUEUES)

    def forward(self, ids, label):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = self.out(self.enc(self.emb(ids)).mean(1))
        return F.cross_entropy(logits.float(), label)


def upload(array):
    host = torch.from_numpy(array)
    return host.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else host


def main():
    torch.manual_seed(0)
    pool = ThreadPoolExecutor(READERS)
    ahead = deque(pool.submit(read_batch, s) for s in range(AHEAD))
    model = Router().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    step_loss = torch.compile(model)

    half = STEPS // 2
    for step in range(STEPS):
        if step == half:
            if device.type == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        ids, label = ahead.popleft().result()
        ahead.append(pool.submit(read_batch, AHEAD + step))
        loss = step_loss(upload(ids), upload(label))
        loss.backward()
        opt.step()
        opt.zero_grad()
    if device.type == "cuda":
        torch.cuda.synchronize()
    t1 = time.perf_counter()
    pool.shutdown(cancel_futures=True)
    print(f"loss {loss.item():.4f}")
    print(f"step_ms={(t1 - t0) * 1e3 / (STEPS - half):.3f}")


if __name__ == "__main__":
    main()
