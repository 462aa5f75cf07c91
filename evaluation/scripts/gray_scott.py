"""Gray-Scott patterns with spatially varying feed; a field diary is kept on the side."""
import os
import torch
import torch.nn.functional as F

SIZE, DT, INNER = 192, 1.0, 3
STEPS = int(os.environ.get("STEPS", "36000"))


class Diary:
    def __init__(self):
        self.rows = []

    @torch.compiler.disable
    def note(self, tick, u, v):
        self.rows.append((tick, v.mean().item(), (v > 0.2).float().mean().item()))
        tick, mean, cover = self.rows[-1]
        print(f"tick {tick:6d}  activator {mean:.4f}  coverage {cover:.3f}")


diary = Diary()


def laplace(f):
    p = F.pad(f[None, None], (1, 1, 1, 1), mode="circular")[0, 0]
    cross = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    diag = p[:-2, :-2] + p[:-2, 2:] + p[2:, :-2] + p[2:, 2:]
    return 0.2 * cross + 0.05 * diag - f


def react(u, v, feed, kill):
    uvv = u * v * v
    du = 0.16 * laplace(u) - uvv + feed * (1 - u)
    dv = 0.08 * laplace(v) + uvv - (feed + kill) * v
    return (u + DT * du).clamp(0, 1), (v + DT * dv).clamp(0, 1)


@torch.compile
def advance(u, v, feed, kill, report: bool, tick: torch.Tensor):
    for _ in range(INNER):
        u, v = react(u, v, feed, kill)
    if report:
        diary.note(int(tick), u, v)
    return u, v


def seed_fields(gen):
    u, v = torch.ones(SIZE, SIZE), torch.zeros(SIZE, SIZE)
    for _ in range(18):
        r, c = torch.randint(8, SIZE - 8, (2,), generator=gen).tolist()
        u[r - 5:r + 5, c - 5:c + 5], v[r - 5:r + 5, c - 5:c + 5] = 0.5, 0.25
    v += 0.02 * torch.rand(SIZE, SIZE, generator=gen)
    return u, v


@torch.no_grad()
def main():
    gen = torch.Generator().manual_seed(12)
    u, v = seed_fields(gen)
    ramp = torch.linspace(0.03, 0.05, SIZE)
    feed, kill = ramp[None].expand(SIZE, SIZE).contiguous(), torch.full((SIZE, SIZE), 0.061)
    for step in range(STEPS):
        u, v = advance(u, v, feed, kill, step % 1800 == 0, torch.tensor(step * INNER))
    diary.note(STEPS * INNER, u, v)


if __name__ == "__main__":
    main()
