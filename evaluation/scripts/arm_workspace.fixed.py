"""Sample joint angles of a six-axis arm and map how much of a bench it reaches."""
import os
import torch

torch.set_num_threads(1)
torch.manual_seed(5)

STEPS = int(os.environ.get("STEPS", "4000"))
SAMPLES = 16384

# link length, link offset, twist of each axis
LINKS = torch.tensor([
    [0.00, 0.33, -1.5708],
    [0.44, 0.00, 0.0],
    [0.04, 0.00, -1.5708],
    [0.00, 0.42, 1.5708],
    [0.00, 0.00, -1.5708],
    [0.00, 0.08, 0.0],
])
LIMITS = torch.tensor([2.9, 1.9, 2.4, 3.1, 2.0, 3.1])


def link_transform(theta, length, offset, twist):
    c, s = torch.cos(theta), torch.sin(theta)
    ct, st = torch.cos(twist), torch.sin(twist)
    zero, one = torch.zeros_like(c), torch.ones_like(c)
    rows = torch.stack([
        c, -s * ct, s * st, length * c,
        s, c * ct, -c * st, length * s,
        zero, one * st, one * ct, one * offset,
        zero, zero, zero, one,
    ], dim=-1)
    return rows.view(-1, 4, 4)


def chain(pose, local):
    return (pose.unsqueeze(-1) * local.unsqueeze(-3)).sum(dim=-2)


@torch.compile
def reach(theta, links, target):
    pose = link_transform(theta[0], *links[0])
    for axis in range(1, links.shape[0]):
        local = link_transform(theta[axis], *links[axis])
        pose = chain(pose, local)
    tip = pose[:, :3, 3]
    distance = (tip - target).square().sum(dim=-1).sqrt()
    upright = pose[:, 2, 2]
    return distance, upright


def main():
    bench = torch.rand(200, 3) * torch.tensor([0.8, 0.8, 0.3])
    hits = torch.zeros(200)
    with torch.no_grad():
        for step in range(STEPS):
            theta = (torch.rand(6, SAMPLES) * 2 - 1) * LIMITS[:, None]
            target = bench[step % 200]
            out, upright = reach(theta, LINKS, target)
            good = (out < 0.05) & (upright < 0)
            hits[step % 200] += good.sum()
            if step % 500 == 499:
                print(f"step {step + 1}: reachable {(hits > 0).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
