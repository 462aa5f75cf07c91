"""Attention over packed documents: each batch packs documents differently."""
import os
import os
import time
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(6)

BIG = DEV == "cuda"
SEQ = 8192 if BIG else 512
HEADS, DIM = 8, 64
STEPS = 700 if BIG else 6
STEPS = int(os.environ.get("STEPS", STEPS))
WINDOW = 256


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


attend = torch.compile(flex_attention)


def pack(seq):
    cuts = torch.randint(1, seq, (seq // 256,), device=DEV)
    ids = torch.zeros(seq, dtype=torch.int32, device=DEV)
    ids[cuts] = 1
    return ids.cumsum(0).to(torch.int32)


def block_mask_for(doc):
    def rule(b, h, q, kv):
        same = doc[q] == doc[kv]
        near = (q >= kv) & (q - kv < WINDOW)
        return same & near
    return create_block_mask(rule, None, None, SEQ, SEQ, device=DEV)


def main():
    dtype = torch.bfloat16 if BIG else torch.float32
    q, k, v = (torch.randn(1, HEADS, SEQ, DIM, device=DEV, dtype=dtype) for _ in range(3))
    proj = torch.randn(DIM, DIM, device=DEV, dtype=dtype) / DIM ** 0.5
    laps = []
    with torch.no_grad():
        for s in range(STEPS):
            doc = pack(SEQ)
            sync()
            t0 = time.perf_counter()
            mask = block_mask_for(doc)
            out = attend(q, k, v, block_mask=mask)
            q = 0.5 * q + 0.5 * (out @ proj)
            sync()
            laps.append(time.perf_counter() - t0)
            if s % 100 == 0:
                print(f"batch {s:4d}: {int(doc[-1]) + 1} documents, |q| {q.abs().mean().item():.4f}")
    laps = sorted(laps[len(laps) // 2:])
    print(f"checksum {q.float().sum().item():.3f}")
    print(f"median batch {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
