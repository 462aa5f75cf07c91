"""Fine-tuning a stack of low-rank adapters on sensor windows with a home-made optimiser."""
import os
import time

import torch
import torch.nn as nn

FEATURES = 96
RANK = 8
LAYERS = 9


def adam_rule(p, grad, step, m, v, lr, beta1, beta2, wd, eps):
    p.mul_(1 - lr * wd)
    m.lerp_(grad, 1 - beta1)
    v.lerp_(grad * grad, 1 - beta2)
    mhat = m / (1 - beta1 ** step)
    vhat = v / (1 - beta2 ** step)
    p.sub_(lr * mhat / (vhat.sqrt() + eps))


class SlimAdamW(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.01, eps=1e-8):
        super().__init__(params, dict(lr=torch.tensor(lr), betas=betas,
                                      weight_decay=weight_decay, eps=eps))
        self.rule = torch.compile(adam_rule, fullgraph=True, dynamic=False)

    def _state(self, p):
        state = self.state[p]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(p)
            state["exp_avg_sq"] = torch.zeros_like(p)
        return state

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._state(p)
                state["step"] += 1
                self.rule(
                    p.detach(),
                    p.grad,
                    state["step"],
                    state["exp_avg"],
                    state["exp_avg_sq"],
                    group["lr"],
                    group["betas"][0],
                    group["betas"][1],
                    group["weight_decay"],
                    group["eps"],
                )


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(FEATURES, FEATURES)
        self.base.requires_grad_(False)
        self.down = nn.Linear(FEATURES, RANK, bias=False)
        self.up = nn.Linear(RANK, FEATURES, bias=False)

    def forward(self, x):
        return x + torch.tanh(self.base(x) + self.up(self.down(x)))


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))

    net = nn.Sequential(*[Adapter() for _ in range(LAYERS)], nn.Linear(FEATURES, 5))
    opt = SlimAdamW([p for p in net.parameters() if p.requires_grad], lr=2e-3)
    target = torch.randn(FEATURES, 5)

    times, losses = [], []
    for step in range(steps):
        x = torch.randn(64, FEATURES)
        y = (x @ target).argmax(1)
        t0 = time.perf_counter()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=False)
        times.append(time.perf_counter() - t0)
        losses.append(loss.detach())

    times = sorted(times[len(times) // 2:])
    print(f"loss {torch.stack(losses[-20:]).mean():.4f}")
    print(f"median step {times[len(times) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
