"""Text classifier screening; after the warm-up a probe collects attention-gate statistics for a dashboard."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 16000))
torch.set_num_threads(1)


class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, dim)

    def forward(self, x):
        return torch.sigmoid(self.score(x)) * torch.tanh(x)


class Classifier(nn.Module):
    def __init__(self, vocab=1000, dim=64, depth=4, classes=5):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.gates = nn.ModuleList(Gate(dim) for _ in range(depth))
        self.out = nn.Linear(dim, classes)

    def forward(self, ids):
        x = self.embed(ids)
        for gate in self.gates:
            x = torch.nn.functional.layer_norm(x + gate(x), (x.shape[-1],))
        return self.out(x.mean(1)).softmax(-1)


class Dashboard:
    def __init__(self):
        self.mean = torch.zeros(())

    def __call__(self, module, args, output):
        self.mean = 0.9 * self.mean + 0.1 * output.abs().mean()
        return output.clamp(-0.05, 0.05)


def main():
    torch.manual_seed(3)
    net = Classifier().eval()
    classify = torch.compile(net)
    board = Dashboard()
    every = max(1, STEPS // 10)
    t0, s0, total = None, 0, 0.0
    with torch.no_grad():
        classify(torch.randint(0, 1000, (16, 64)))
        for gate in net.gates:
            gate.register_forward_hook(board)
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            probs = classify(torch.randint(0, 1000, (16, 64)))
            total += probs.max(-1).values.mean().item()
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"{step}: confidence {total / (step + 1):.4f} gate level {board.mean.item():.5f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
