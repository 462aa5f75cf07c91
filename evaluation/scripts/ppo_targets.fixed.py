import os
import torch

torch.set_num_threads(1)
torch.manual_seed(21)

STEPS = int(os.environ.get("STEPS", "40000"))
HORIZON = 96
ENVS = 1024
GAMMA = 0.99
LAM = 0.95


@torch.compile
def advantages(rewards, values, dones):
    adv = [None] * HORIZON
    running = torch.zeros(ENVS)
    for t in reversed(range(HORIZON)):
        alive = 1.0 - dones[t]
        delta = rewards[t] + GAMMA * values[t + 1] * alive - values[t]
        running = delta + GAMMA * LAM * alive * running
        adv[t] = running
    adv = torch.stack(adv)
    return adv, adv + values[:-1]


rollouts = []
for _ in range(4):
    rollouts.append((
        torch.randn(HORIZON, ENVS),
        torch.randn(HORIZON + 1, ENVS),
        (torch.rand(HORIZON, ENVS) < 0.02).float(),
    ))

score = torch.zeros(())
for step in range(STEPS):
    adv, target = advantages(*rollouts[step % len(rollouts)])
    score += target[0, 0] - adv[-1, -1]

print("score", score.item() / STEPS)
