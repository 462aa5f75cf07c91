import dataclasses

import torch

from .aero import rotor_drag


@dataclasses.dataclass
class Airframe:
    mass: float = 0.8
    gain: float = 1.4
    damping: float = 0.6
    period: float = 0.01

    def motion(self, z, u, v, w):
        lift = 9.81 + self.gain * torch.tanh(1.0 - z) - self.damping * w
        thrust = torch.nn.functional.softplus(lift) / self.mass
        fastest = w.abs().amax().item()
        du, dv, dw = rotor_drag(u, v, w, thrust)
        limit = 1.0 / max(1.0, fastest / 20)
        u = (u - self.period * du) * limit
        v = (v - self.period * dv) * limit
        w = (w + self.period * (thrust - 9.81 - dw)) * limit
        return z + self.period * w, u, v, w
