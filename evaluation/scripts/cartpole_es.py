"""Evolution strategy on a batch of cart-poles; one generation is a fixed number of ticks."""
import os
import time

import torch
import torch._dynamo

STEPS = int(os.environ.get("STEPS", "2000"))
GENERATION = 20


def tick(state, w1, w2):
    h = torch.tanh(torch.einsum("pi,pij->pj", state, w1))
    force = torch.tanh(torch.einsum("pj,pj->p", h, w2)) * 10
    x, xd, th, thd = state.unbind(1)
    s, c = torch.sin(th), torch.cos(th)
    tmp = (force + 0.05 * thd * thd * s) / 1.1
    tha = (9.8 * s - c * tmp) / (0.5 * (4.0 / 3.0 - 0.1 * c * c / 1.1))
    xa = tmp - 0.05 * tha * c / 1.1
    new = torch.stack([x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha], 1)
    alive = (th.abs() < 0.4) & (x.abs() < 2.4)
    return new.clamp(-10, 10), alive.float()


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    pop = 8192
    fast_tick = torch.compile(tick)
    mean1, mean2 = torch.zeros(4, 16), torch.zeros(16)
    t0 = time.perf_counter()
    for step in range(STEPS):
        if step % GENERATION == 0:
            torch._dynamo.reset()
            w1 = mean1 + 0.3 * torch.randn(pop, 4, 16)
            w2 = mean2 + 0.3 * torch.randn(pop, 16)
            state = 0.05 * torch.randn(pop, 4)
            fitness = torch.zeros(pop)
            up = torch.ones(pop)
        state, alive = fast_tick(state, w1, w2)
        up = up * alive
        fitness += up
        if step % GENERATION == GENERATION - 1:
            top = fitness.topk(256).indices
            mean1, mean2 = w1[top].mean(0), w2[top].mean(0)
        if (step + 1) % 200 == 0:
            t1 = time.perf_counter()
            print(f"generation {step // GENERATION} best {fitness.max():.0f} {(t1 - t0) / 200 * 1e3:.2f} ms/step", flush=True)
            t0 = t1


if __name__ == "__main__":
    main()
