"""What a tick of the arena does to its fighters; game designers change this."""
import torch

REACH = 4.0
ANGER = 0.3


def separation(place):
    away = place[:, None] - place[None]
    return away, torch.sqrt(away.square().sum(-1) + 1e-6)


@torch.compile
def tick(place, health):
    away, far = separation(place)
    blow = torch.exp(-far / REACH) * torch.sigmoid(REACH - far) * (health > 0).float()
    strength = torch.tanh(health / 50)
    hurt = ANGER * (blow * strength).sum(1)
    push = (away * (blow / far).unsqueeze(-1)).sum(1)
    health = health - 0.01 * hurt
    if health.amin() < -50:
        health = health.clamp(min=-50)
    return (place + 0.01 * push).clamp(0, 20), health
