"""Route support tickets to teams with a frozen transformer encoder (batch scoring)."""
import os
import time

import torch
import torch.nn as nn

device = "cuda"
STEPS = int(os.environ.get("STEPS", "2000"))
VOCAB = 20000
MAX_LEN = 512
TYPICAL = 64
WIDTH = 512
LAYERS = 4
BATCH = 128


class Router(nn.Module):
    def __init__(self, teams=40):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, WIDTH, padding_idx=0)
        self.pos = nn.Parameter(0.02 * torch.randn(MAX_LEN, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, 8, dim_feedforward=4 * WIDTH, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, teams)

    def forward(self, ids):
        pad = ids.eq(0)
        x = self.tok(ids) + self.pos[: ids.shape[1]]
        x = self.encoder(x, src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1)
        pooled = (x * keep).sum(1) / keep.sum(1).clamp_min(1)
        return self.head(pooled).softmax(-1)


def tickets(n):
    out = []
    for _ in range(n):
        ids = torch.randint(1, VOCAB, (BATCH, MAX_LEN), device=device)
        length = torch.randint(8, TYPICAL + 1, (BATCH, 1), device=device)
        ids[torch.arange(MAX_LEN, device=device) >= length] = 0
        out.append(ids)
    return out


@torch.inference_mode()
def main():
    torch.manual_seed(12)
    model = Router().to(device).half().eval()
    model = torch.compile(model)
    batches = tickets(8)
    load = torch.zeros(40, device=device)
    for b in batches[:3]:
        model(b)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        load += model(batches[step % 8]).float().sum(0)
        if step % 250 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"batch {step:5d}  busiest team {int(load.argmax())}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
