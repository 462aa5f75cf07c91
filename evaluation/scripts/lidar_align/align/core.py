import torch

from .types import Pose


def turn_about(v):
    """Rotation matrix of a small rotation vector (Cayley)."""
    x, y, z = v.unbind()
    o = torch.zeros_like(x)
    k = torch.stack([o, -z, y, z, o, -x, -y, x, o]).view(3, 3) / 2
    n = (v.square().sum() / 4)
    return torch.eye(3) + (2 * k + 2 * k @ k) / (1 + n)


def soft_matches(moved, ground, settings):
    apart = moved[:, None, :] - ground[None, :, :]
    square = apart.square().sum(-1)
    kernel = torch.exp(-settings.stiffness * square) / (1 + 0.1 * torch.sqrt(square + 1e-9))
    share = kernel / (kernel.sum(1, keepdim=True) + settings.outliers)
    pull = -(share.unsqueeze(-1) * apart).sum(1)
    return pull, share.sum(1), (share * square).sum() / (share.sum() + 1e-9)


class Aligner:
    def __init__(self, settings):
        self.settings = settings
        self.refine = torch.compile(self._refine)

    def _refine(self, sweep, ground, turn, shift):
        moved = sweep @ turn.T + shift
        pull, weight, residual = soft_matches(moved, ground, self.settings)
        total = weight.sum() + 1e-6
        middle = (weight[:, None] * moved).sum(0) / total
        around = moved - middle
        lever = (around.square().sum(-1) * weight).sum() + 1e-6
        twist = torch.linalg.cross(around, pull).sum(0) / lever * 1.5
        extra = turn_about(twist)
        shift = extra @ (shift - middle) + middle + pull.sum(0) / total
        return extra @ turn, shift, residual

    @torch.no_grad()
    def align(self, sweep, ground):
        pose = Pose(torch.eye(3), torch.zeros(3))
        for number in range(1, self.settings.rounds + 1):
            pose.turn, pose.shift, residual = self.refine(sweep, ground, pose.turn, pose.shift)
            pose.residual, pose.rounds = residual.item(), number
            if pose.residual < self.settings.tolerance:
                break
        return pose
