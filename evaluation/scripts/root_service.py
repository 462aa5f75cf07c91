"""A service that finds roots for the polynomials it is sent."""
import argparse
import queue

import torch
import torch._inductor.config as inductor

inductor.fx_graph_cache = False
inductor.autotune_local_cache = False


@torch.compile
def roots(coefficients, guess):
    a, b, c, d = coefficients.unbind(1)
    x = guess
    for _ in range(12):
        value = ((a * x + b) * x + c) * x + d
        slope = (3 * a * x + 2 * b) * x + c
        change = torch.tanh(value / (slope.abs() + 0.1)) * torch.sign(slope)
        x = x - change
        if change.abs().mean() < 1e-4:
            return x
    return x


class Service:
    def __init__(self):
        self.inbox = queue.Queue()

    def send(self, polynomials):
        self.inbox.put(polynomials)

    def work(self):
        polynomials = self.inbox.get()
        return roots(polynomials, torch.ones(polynomials.shape[0]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=60000)
    args = parser.parse_args()
    torch.manual_seed(0)
    service = Service()
    pool = [torch.rand(16384, 4) + torch.tensor([0.1, 0, 1, -2]) for _ in range(4)]
    with torch.inference_mode():
        for number in range(args.requests):
            service.send(pool[number % 4])
            answer = service.work()
    print(answer.mean().item())


if __name__ == "__main__":
    main()
