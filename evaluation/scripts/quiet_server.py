"""Text-classifier service that must never pause for compilation."""
import os
import random
import time
import torch
import torch.nn as nn

torch.manual_seed(22)
random.seed(22)

DIM, BATCH = 96, 24
REQUESTS = 420
REQUESTS = int(os.environ.get("REQUESTS", REQUESTS))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.ParameterList(nn.Parameter(torch.randn(DIM)) for _ in range(6))
        self.head = nn.Linear(DIM, 20)

    def forward(self, x):
        for w in self.mix:
            g = torch.sigmoid(x * w)
            x = x + torch.tanh(x * g) * torch.sin(w + x)
            x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return self.head(x.amax(1)).softmax(-1)


def warm_up(model):
    for _ in range(3):
        model(torch.randn(BATCH, 128, DIM))
    # production: no compile hiccups in the middle of a request
    torch.compiler.set_stance("eager_on_recompile")


def requests():
    for r in range(REQUESTS):
        length = random.randint(40, 160)
        yield r, torch.randn(BATCH, length, DIM)


def main():
    model = torch.compile(Encoder().eval())
    lat, tokens = [], 0
    votes = torch.zeros(20)
    with torch.no_grad():
        warm_up(model)
        for r, x in requests():
            t0 = time.perf_counter()
            p = model(x)
            lat.append(time.perf_counter() - t0)
            tokens += x.shape[0] * x.shape[1]
            votes += p.sum(0)
            if r % 80 == 0:
                print(f"request {r:4d} length {x.shape[1]}")
    late = lat[REQUESTS // 2:]
    print(f"{tokens} tokens, favourite class {int(votes.argmax())}")
    print(f"mean latency {sum(late) / len(late) * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
