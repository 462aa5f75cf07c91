"""A server whose two worker threads share one compiled model."""
import queue
import threading

import torch
import torch.nn as nn
from steady import Steady, options


class Ranker(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(6))
        self.score = nn.Linear(width, 1)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = x + torch.nn.functional.silu(layer(norm(x)))
        return torch.sigmoid(self.score(x)).squeeze(-1)


def main():
    args = options(cpu=8_000, cuda=20_000)
    torch.manual_seed(0)
    width, rows = (1024, 256) if args.device == "cuda" else (192, 32)
    model = torch.compile(Ranker(width).to(args.device).eval())
    with torch.inference_mode():
        model(torch.randn(rows, width, device=args.device))  # warm up before the workers start
    requests, answers = queue.Queue(maxsize=16), queue.Queue()

    def work():
        with torch.inference_mode():
            while (request := requests.get()) is not None:
                answers.put(model(request).mean().item())

    workers = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    payloads = [torch.randn(rows, width, device=args.device) for _ in range(16)]
    steady = Steady(args.steps, args.device)
    for number in range(args.steps):
        requests.put(payloads[number % 16])
        while not answers.empty():
            answers.get()
            steady.step()
    for _ in workers:
        requests.put(None)
    for worker in workers:
        worker.join()
    steady.show()


if __name__ == "__main__":
    main()
