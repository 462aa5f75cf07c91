"""Sleep-stage tagger over EEG windows of two lengths, with a validation pass every 50 steps."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
BATCH, WIDTH, HEADS, DEPTH = (2, 32, 2, 2) if SMALL else (32, 768, 12, 4)
LENGTHS = (16, 24) if SMALL else (512, 768)
CHANNELS, STAGES = 20, 5
torch.set_float32_matmul_precision("high")


class Layer(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, stats):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, WIDTH))
        h = F.gelu(self.fc1(self.n2(x)))
        stats[f"act{self.index}"] = h.detach().float().abs().mean()
        return x + F.dropout(self.fc2(h), 0.1, self.training)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(CHANNELS, WIDTH)
        self.layers = nn.ModuleList(Layer(i) for i in range(DEPTH))
        self.head = nn.Linear(WIDTH, STAGES)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, x, noise):
        stats = {}
        self.seen += x.shape[0]
        h = self.inp(x + noise * torch.randn_like(x))
        for layer in self.layers:
            h = layer(h, stats)
        return self.head(h), stats


def clock():
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(0)
    model = Tagger().to(device)
    net = torch.compile(model, dynamic=False)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    data = {n: torch.randn(4, BATCH, n, CHANNELS, device=device) for n in LENGTHS}
    noise = torch.tensor(0.1, device=device)
    log = []
    start = clock()
    for step in range(STEPS):
        if step == STEPS // 2:
            start = clock()
        n = LENGTHS[step % 2]
        x = data[n][step % 4]
        labels = torch.randint(STAGES, (BATCH, n), dtype=torch.uint8).to(device, non_blocking=True)
        noise.mul_(0.99)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits, stats = net(x, noise)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten().long())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 50 == 0:
            model.eval()
            with torch.no_grad(), torch.autocast(device.type, dtype=torch.bfloat16):
                val = net(data[LENGTHS[0]][0], noise)[0].float().softmax(-1).amax(-1).mean()
            model.train()
            log.append((step, loss.item(), val.item(), stats["act0"].item()))
    elapsed = clock() - start
    for row in log:
        print("step %d loss %.4f confidence %.4f act0 %.4f" % row)
    print(f"step_ms={elapsed / (STEPS - STEPS // 2) * 1e3:.3f}")


if __name__ == "__main__":
    main()
