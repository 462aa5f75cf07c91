"""Retrieve soil moisture, roughness and temperature from radiometer channels."""
import os
import torch
from torch import nn
from torch.func import jacfwd, vmap

torch.set_num_threads(1)
torch.manual_seed(8)

STEPS = int(os.environ.get("STEPS", "4000"))
PIXELS = 512
STATE = 3
CHANNELS = 40


class Radiometer(nn.Module):
    """Surrogate of the forward model: state of one pixel -> channel brightness."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(STATE, 48), nn.Tanh(),
            nn.Linear(48, 48), nn.Tanh(),
            nn.Linear(48, CHANNELS),
        )

    def forward(self, state):
        return self.net(state)


surrogate = Radiometer().requires_grad_(False)


@torch.compile
def refine(state, observed, prior, damping):
    simulated = surrogate(state)
    jac = vmap(jacfwd(surrogate))(state)
    residual = observed - simulated
    pull = torch.einsum("pcs,pc->ps", jac, residual) + 0.05 * (prior - state)
    curvature = jac.square().sum(dim=1) + 0.05
    new_state = state + pull / (curvature * damping)
    return new_state, residual.square().mean()


def main():
    truth = torch.randn(PIXELS, STATE) * 0.5
    observed = surrogate(truth) + 0.01 * torch.randn(PIXELS, CHANNELS)
    prior = torch.zeros(PIXELS, STATE)
    damping = torch.full((1, STATE), 4.0)

    state = prior.clone()
    for step in range(STEPS):
        state, out = refine(state, observed, prior, damping)
        if step % 100 == 99:
            error = (state - truth).abs().mean().item()
            print(f"iteration {step + 1}: misfit {out.item():.6f} error {error:.4f}")
            observed = surrogate(truth) + 0.01 * torch.randn(PIXELS, CHANNELS)


if __name__ == "__main__":
    main()
