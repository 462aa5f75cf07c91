"""Actor-critic on a vectorised pole-balancing task."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Poles:
    """Many poles at once; all state in one tensor."""

    def __init__(self, count):
        self.state = 0.1 * torch.randn(count, 4)

    def step(self, action):
        force = action.float() * 2 - 1
        x, v, angle, spin = self.state.unbind(1)
        spin = spin + 0.02 * (9.8 * angle - force)
        self.state = torch.stack([x + 0.02 * v, v + 0.02 * force, angle + 0.02 * spin, spin], 1)
        fallen = (self.state[:, 2].abs() > 0.3) | (self.state[:, 0].abs() > 2)
        self.state = torch.where(fallen[:, None], torch.zeros(()), self.state)
        return 1.0 - fallen.float()


class ActorCritic(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(4, hidden), nn.Mish(), nn.Linear(hidden, hidden), nn.Mish(), nn.LayerNorm(hidden)
        )
        self.actor = nn.Linear(hidden, 2)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, state):
        h = self.body(state)
        return F.log_softmax(self.actor(h), -1), self.critic(h).squeeze(-1)


def train(updates, poles):
    env = Poles(poles)
    net = ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-4)
    act = torch.compile(net)
    for update in range(updates):
        log_probs, value = act(env.state)
        action = torch.multinomial(log_probs.detach().exp(), 1)
        reward = env.step(action.squeeze(1))
        advantage = reward - value
        chosen = log_probs.gather(1, action).squeeze(1)
        loss = (-chosen * advantage.detach() + 0.5 * advantage.square()).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if update % 1000 == 0:
            print(f"update {update:6d}  reward {reward.mean():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=45000)
    parser.add_argument("--poles", type=int, default=512)
    known = parser.parse_args()
    torch.manual_seed(0)
    train(known.updates, known.poles)
