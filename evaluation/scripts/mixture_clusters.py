"""EM for a diagonal Gaussian mixture over customer embeddings, streamed in chunks."""
import logging
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", 40000))
CHUNK, DIM, K = 1024, 16, 24
torch.set_num_threads(1)
log = logging.getLogger("em")


class Mixture:
    def __init__(self):
        self.mean = torch.randn(K, DIM)
        self.log_var = torch.zeros(K, DIM)
        self.log_pi = torch.full((K,), -float(K)).log_softmax(0)

    @torch.compile
    def e_step(self, x):
        z = (x[:, None] - self.mean) * torch.exp(-0.5 * self.log_var)
        logp = self.log_pi - 0.5 * (z.square() + self.log_var).sum(-1)
        norm = logp.logsumexp(1, keepdim=True)
        resp = (logp - norm).exp()
        w = resp.sum(0)
        return w, (resp[..., None] * x[:, None]).sum(0), (resp[..., None] * z.square()).sum(0), norm.mean()

    def m_step(self, w, first, ratio, rate):
        n = w[:, None] + 1e-3
        self.mean = (1 - rate) * self.mean + rate * first / n
        self.log_var = self.log_var + rate * (ratio / n + 1e-3).log().clamp(-1, 1)
        self.log_pi = ((1 - rate) * self.log_pi.exp() + rate * w / w.sum()).log()


def main():
    torch.manual_seed(51)
    centres = torch.randn(K, DIM) * 2
    gm = Mixture()
    every = max(1, STEPS // 10)
    t0, s0 = None, 0
    with torch.no_grad():
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            x = centres[torch.randint(0, K, (CHUNK,))] + 0.5 * torch.randn(CHUNK, DIM)
            w, first, ratio, ll = gm.e_step(x)
            gm.m_step(w, first, ratio, 0.05)
            log.debug("chunk %d", step)
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"chunk {step}: loglik {ll.item():.4f} used {int((w > 5).sum())}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
