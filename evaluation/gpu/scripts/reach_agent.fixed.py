"""Twin-critic value learning for a point-reaching task with a batched simulator."""
import argparse
import time

import torch
from torch import nn


def mlp(inputs, outputs, width=512, depth=5):
    sizes = [inputs] + [width] * depth
    body = []
    for a, b in zip(sizes, sizes[1:]):
        body += [nn.Linear(a, b), nn.LayerNorm(b), nn.SiLU()]
    return nn.Sequential(*body, nn.Linear(sizes[-1], outputs))


class Critics(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.one, self.two = mlp(obs, actions), mlp(obs, actions)

    def forward(self, obs):
        return self.one(obs), self.two(obs)


class ReachWorld:
    """Batched 2-D reaching with eight moves, entirely on the device."""

    def __init__(self, count, device):
        self.count, self.device = count, device
        turn = torch.arange(8, device=device) * 0.7853982
        self.moves = 0.05 * torch.stack([turn.cos(), turn.sin()], 1)
        self.pos = torch.rand(count, 2, device=device)
        self.goal = torch.rand(count, 2, device=device)

    def observe(self):
        return torch.cat([self.pos, self.goal, self.goal - self.pos], 1)

    def act(self, a):
        self.pos = (self.pos + self.moves[a]).clamp(0, 1)
        gap = (self.pos - self.goal).norm(dim=1)
        done = gap < 0.05
        reward = done.float() - 0.1 * gap
        self.goal = torch.where(done[:, None], torch.rand_like(self.goal), self.goal)
        return reward, done.float()


def td_loss(critics, target, obs, act, reward, done, after):
    with torch.no_grad():
        t1, t2 = target(after)
        best = torch.minimum(t1, t2).amax(1)
        goal = reward + 0.97 * (1 - done) * best
    q1, q2 = (q.gather(1, act[:, None]).squeeze(1) for q in critics(obs))
    return nn.functional.smooth_l1_loss(q1, goal) + nn.functional.smooth_l1_loss(q2, goal)


@torch.no_grad()
def follow(target, source, tau):
    torch._foreach_lerp_(list(target.parameters()), list(source.parameters()), tau)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=4000)
    ap.add_argument("--envs", type=int, default=512)
    args = ap.parse_args()
    device = "cuda"

    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    world = ReachWorld(args.envs, device)
    critics, target = Critics(6, 8).to(device), Critics(6, 8).to(device)
    target.load_state_dict(critics.state_dict())
    target.requires_grad_(False)
    learn = torch.compile(td_loss, mode="reduce-overhead")
    opt = torch.optim.Adam(critics.parameters(), lr=3e-4, fused=True)
    total, began = torch.zeros((), device=device), time.perf_counter()
    for i in range(args.steps):
        obs = world.observe()
        explore = torch.randint(0, 8, (args.envs,), device=device)
        toward = ((obs[:, 4:] @ world.moves.T).argmax(1))
        act = torch.where(torch.rand(args.envs, device=device) < 0.5, explore, toward)
        reward, done = world.act(act)
        loss = learn(critics, target, obs, act, reward, done, world.observe())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        follow(target, critics, 0.005)
        total += reward.mean()
        if i % 1000 == 999:
            print(f"{i + 1}: reward {total.item() / 1000:.4f} {time.perf_counter() - began:.1f} s")
            total.zero_()


if __name__ == "__main__":
    main()
