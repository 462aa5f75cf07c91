"""Remove speckle from turbine-blade ultrasound scans; scans stream in from pinned host memory."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"
STEPS = int(os.environ.get("STEPS", "2400"))
ACCUM = 2
BATCH = 16
SIZE = 128


class ResUnit(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.n1 = nn.GroupNorm(8, ch)
        self.c1 = nn.Conv2d(ch, ch, 3, padding=1)
        self.n2 = nn.GroupNorm(8, ch)
        self.c2 = nn.Conv2d(ch, ch, 3, padding=1)

    def forward(self, x):
        y = self.c1(F.silu(self.n1(x)))
        y = self.c2(F.silu(self.n2(y)))
        return x + y


class Despeckle(nn.Module):
    def __init__(self, ch=64, depth=5):
        super().__init__()
        self.head = nn.Conv2d(1, ch, 3, padding=1)
        self.units = nn.Sequential(*(ResUnit(ch) for _ in range(depth)))
        self.tail = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x):
        return x - self.tail(self.units(self.head(x)))


class ScanFeed:
    """Copies the next batch on a stream of its own while the current one is being used."""

    def __init__(self, n=24):
        self.host = [torch.rand(BATCH, 1, SIZE, SIZE).pin_memory() for _ in range(n)]
        self.stream = torch.cuda.Stream()
        self.at = 0
        self.preload()

    def preload(self):
        with torch.cuda.stream(self.stream):
            self.next = self.host[self.at % len(self.host)].to(DEVICE, non_blocking=True)
        self.at += 1

    def take(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        scan = self.next
        scan.record_stream(torch.cuda.current_stream())
        self.preload()
        return scan


def main():
    torch.manual_seed(0)
    net = Despeckle().to(DEVICE, memory_format=torch.channels_last)
    fast = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=True)
    scaler = torch.amp.GradScaler(DEVICE)
    feed = ScanFeed()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for step in range(1, STEPS + 1):
        clean = feed.take().contiguous(memory_format=torch.channels_last)
        noisy = clean * (1.0 + 0.2 * torch.randn_like(clean))
        with torch.autocast(DEVICE, dtype=torch.float16):
            out = fast(noisy)
        loss = F.mse_loss(out.float(), clean) / ACCUM
        scaler.scale(loss).backward()
        if step % ACCUM == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
        if step % 400 == 0:
            end.record()
            end.synchronize()
            print(f"step {step}: loss {loss.item() * ACCUM:.5f}  {begin.elapsed_time(end) / 400:.2f} ms")
            begin.record()


if __name__ == "__main__":
    main()
