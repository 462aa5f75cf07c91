"""Wide two-layer regressor on pre-extracted descriptors, trained with momentum SGD."""
import logging
import time

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("wide")


class Wide(nn.Module):
    def __init__(self, d_in=768, d_hid=1536, d_out=768):
        super().__init__()
        self.inp = nn.Linear(d_in, d_hid, bias=False)
        self.mid = nn.Linear(d_hid, d_hid, bias=False)
        self.out = nn.Linear(d_hid, d_out, bias=False)

    def forward(self, x):
        h = torch.relu(self.inp(x))
        h = torch.relu(self.mid(h))
        return self.out(h)


class Meter:
    def __init__(self):
        self.values = []

    def add(self, v):
        self.values.append(v)

    def flush(self):
        out = torch.stack(self.values).mean().item()
        self.values.clear()
        return out


def train_step(model, opt, x, y):
    pred = model(x)
    loss = nn.functional.mse_loss(pred, y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss.detach()


def main():
    torch.manual_seed(3)
    model = Wide()
    compiled = torch.compile(model, mode="default")
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    teacher = torch.randn(768, 768) / 768 ** 0.5
    xs = [torch.randn(128, 768) for _ in range(8)]
    pairs = [(x, torch.tanh(x @ teacher)) for x in xs]

    for x, y in pairs[:5]:
        train_step(compiled, opt, x, y)

    meter, lapse = Meter(), []
    for it in range(200):
        x, y = pairs[it % len(pairs)]
        t0 = time.perf_counter()
        loss = train_step(compiled, opt, x, y)
        lapse.append(time.perf_counter() - t0)
        meter.add(loss)
        if (it + 1) % 50 == 0:
            log.info("it %d  mse %.5f", it + 1, meter.flush())
    lapse.sort()
    print(f"median {lapse[len(lapse) // 2] * 1e3:.2f} ms/it")


if __name__ == "__main__":
    main()
