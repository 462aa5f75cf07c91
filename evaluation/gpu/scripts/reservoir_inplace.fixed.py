"""Echo-state reservoir driven by a stream; state is kept by the caller."""
import os
import os
import time
import torch

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(3)

LAYERS, UNITS, STREAMS = 60, 128, 16
STEPS = 6000
STEPS = int(os.environ.get("STEPS", STEPS))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


def pulse(state, trace, weights, x):
    h, rows = x, []
    for w, row in zip(weights, state.unbind(0)):
        h = torch.tanh(h @ w + 0.5 * row)
        rows.append(h)
    state.copy_(torch.stack(rows))
    trace.mul_(0.99).add_(state.mean(0), alpha=0.01)
    return h


def make_weights():
    ws = []
    for _ in range(LAYERS):
        w = torch.randn(UNITS, UNITS, device=DEV) / UNITS ** 0.5
        ws.append(w * 1.1)
    return ws


def main():
    state = torch.zeros(LAYERS, STREAMS, UNITS, device=DEV)
    trace = torch.zeros(STREAMS, UNITS, device=DEV)
    weights = make_weights()
    torch._dynamo.mark_static_address(state)
    torch._dynamo.mark_static_address(trace)
    drive = torch.randn(64, STREAMS, UNITS, device=DEV)
    step = torch.compile(pulse, mode="reduce-overhead")
    marks = []
    t0 = time.perf_counter()
    for k in range(STEPS):
        out = step(state, trace, weights, drive[k % 64])
        if k % 200 == 199:
            sync()
            now = time.perf_counter()
            marks.append((now - t0) / 200)
            t0 = now
        if k % 1000 == 0:
            print(f"step {k:5d} activity {out.abs().mean().item():.4f}")
    marks = sorted(marks[len(marks) // 2:])
    print(f"trace norm {trace.norm().item():.4f}")
    print(f"median step {marks[len(marks) // 2] * 1e3:.4f} ms")


if __name__ == "__main__":
    main()
