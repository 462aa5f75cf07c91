import functools

import torch


def validated(model):
    @functools.wraps(model)
    def run(*state):
        shape = state[0].shape
        assert all(s.shape == shape for s in state), "one row of every state for each craft"
        return model(*state)
    return torch.compiler.disable(run)


@validated
def rotor_drag(u, v, w, thrust):
    speed = (u * u + v * v + w * w + 1e-6).sqrt()
    advance = torch.atan2(w, (u * u + v * v + 1e-6).sqrt())
    inflow = torch.tanh(speed / 8) * torch.exp(-advance.square())
    wash = torch.sigmoid(thrust) * inflow + 0.1 * torch.sin(2 * advance)
    ground = 1 / (1 + torch.exp(-4 * wash)) + 0.05 * torch.cos(speed)
    stall = torch.erf(wash) * torch.log1p(speed) + 0.01 * speed * speed
    factor = 0.02 * (ground + stall) * torch.exp(-0.1 * wash * wash)
    return factor * u, factor * v, factor * w
