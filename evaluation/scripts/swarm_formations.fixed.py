# Classify drone swarms by formation from noisy radar returns.
# Each sample is a bag of returns (range, azimuth, elevation, doppler).
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(17)

STEPS = int(os.environ.get("STEPS", "2700"))
N_RETURNS = 256
BATCH = 48
N_FORMATIONS = 6
WIDTH = 64


class ReturnEncoder(nn.Module):
    def __init__(self, d_in, width):
        super().__init__()
        self.lift = nn.Linear(d_in, width)
        self.skip = nn.Linear(d_in, width, bias=False)

    def forward(self, pts):
        h = torch.tanh(self.lift(pts))
        return h + self.skip(pts)


class SwarmNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = ReturnEncoder(4, WIDTH)
        self.head = nn.Sequential(
            nn.Linear(WIDTH, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, N_FORMATIONS),
        )

    def summarize(self, feats):
        return feats.max(dim=1).values

    def forward(self, pts):
        return self.head(self.summarize(self.encoder(pts)))


def synth_batch(centers, spread):
    labels = torch.randint(0, N_FORMATIONS, (BATCH,))
    pts = torch.randn(BATCH, N_RETURNS, 4) * spread[labels][:, None, :]
    return pts + centers[labels][:, None, :], labels


def build_stream(n):
    centers = torch.randn(N_FORMATIONS, 4)
    spread = torch.rand(N_FORMATIONS, 4) + 0.3
    return [synth_batch(centers, spread) for _ in range(n)]


def accuracy(logits, labels):
    return (logits.argmax(dim=1) == labels).float().mean()


net = SwarmNet()
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)


@torch.compile
def objective(pts, labels):
    logits = net(pts)
    return F.cross_entropy(logits, labels, label_smoothing=0.05), logits


def fit():
    stream = build_stream(10)
    running, hits = 0.0, torch.zeros(())
    for step in range(STEPS):
        pts, labels = stream[step % len(stream)]
        opt.zero_grad(set_to_none=True)
        loss, logits = objective(pts, labels)
        loss.backward()
        opt.step()
        with torch.no_grad():
            hits += accuracy(logits, labels)
        if step % 500 == 499:
            running = loss.item()
            print(f"step {step + 1}: loss {running:.3f}  acc {(hits / (step + 1)).item():.3f}")


if __name__ == "__main__":
    fit()
