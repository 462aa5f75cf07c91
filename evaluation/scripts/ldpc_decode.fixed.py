"""Normalised min-sum / sum-product decoding of a random regular LDPC code over a noisy channel."""
import os
import torch

CHECKS, DEGREE, BITS, FRAMES = 192, 6, 384, 48
ROUNDS = 8
STEPS = int(os.environ.get("STEPS", "3200"))


class Counters:
    def __init__(self):
        self.calls, self.frames, self.failed = 0, 0, 0


counters = Counters()


def build_code(gen):
    slots = torch.arange(BITS).repeat_interleave(CHECKS * DEGREE // BITS)
    return slots[torch.randperm(len(slots), generator=gen)].view(DEGREE, CHECKS)


@torch.compile
def decode(llr, edges):
    n = llr.shape[0]
    flat = edges.reshape(-1)
    to_var = torch.zeros(n, DEGREE, CHECKS)
    total = llr
    for _ in range(ROUNDS):
        to_check = (total[:, flat].view(n, DEGREE, CHECKS) - to_var).clamp(-18.0, 18.0)
        half = torch.tanh(to_check.abs() * 0.5).clamp(1e-6, 1 - 1e-6)
        sign = torch.where(to_check < 0, -1.0, 1.0)
        logs = torch.log(half)
        others = torch.exp(logs.sum(1, keepdim=True) - logs).clamp(max=1 - 1e-6)
        magnitude = torch.log1p(others) - torch.log1p(-others)
        to_var = 0.9 * sign.prod(1, keepdim=True) * sign * magnitude
        total = llr.index_add(1, flat, to_var.reshape(n, -1))
    hard = (total < 0).long()
    parity = hard[:, flat].view(n, DEGREE, CHECKS).sum(1) % 2
    return hard, parity.sum(-1), torch.isfinite(total).all()


def channel(snr_db, gen):
    sigma = 10 ** (-snr_db / 20)
    received = 1.0 + sigma * torch.randn(FRAMES, BITS, generator=gen)
    return 2 * received / sigma ** 2


def sweep():
    levels = (2.0, 3.0, 4.0)
    while True:
        yield from levels


@torch.no_grad()
def main():
    gen = torch.Generator().manual_seed(77)
    edges = build_code(gen)
    errors = {}
    for batch, snr in zip(range(STEPS), sweep()):
        llr = channel(snr, gen)
        hard, unsatisfied, finite = decode(llr, edges)
        if not finite:
            raise FloatingPointError("message overflow")
        counters.calls += 1
        counters.frames += FRAMES
        counters.failed += int((unsatisfied > 0).sum())
        old = errors.get(snr, (0, 0))
        errors[snr] = (old[0] + int(hard.sum()), old[1] + hard.numel())
        if batch % 160 == 0:
            rates = {k: f"{a / b:.2e}" for k, (a, b) in errors.items()}
            print(f"batch {batch:4d}  bit error rate {rates}  failed {counters.failed}/{counters.frames}")
    print("calls", counters.calls, "failed share", round(counters.failed / counters.frames, 4))


if __name__ == "__main__":
    main()
