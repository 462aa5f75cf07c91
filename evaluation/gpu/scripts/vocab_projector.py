"""Distil teacher hidden states into a wide projection stack (bfloat16 training)."""
import os
import time

import torch
import torch.nn as nn

device = "cuda"
STEPS = int(os.environ.get("STEPS", "2000"))
TOKENS = 8192
WIDTH = 6144


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(WIDTH, WIDTH, bias=False)
        self.b = nn.Linear(WIDTH, WIDTH, bias=False)
        self.c = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, h):
        return self.c(torch.relu(self.b(self.a(h))))


def main():
    torch.manual_seed(22)
    model = Projector().to(device, torch.bfloat16)
    model = torch.compile(model)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    hidden = torch.randn(4, TOKENS, WIDTH, device=device, dtype=torch.bfloat16)
    teacher = torch.randn(4, TOKENS, WIDTH, device=device, dtype=torch.bfloat16)
    history = []

    def train(i):
        out = model(hidden[i % 4])
        loss = -(out * teacher[i % 4]).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss.item()

    for i in range(3):
        train(i)
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        history.append(train(step))
        if step % 200 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            recent = sum(history[-50:]) / len(history[-50:])
            print(f"step {step:5d}  score {recent:.6f}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
