"""Bank of coupled pendulums used as a sound source; the damper is tightened while it plays."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "30000"))
BANKS, COUNT = 16384, 2048
torch.manual_seed(19)


def tensors_only(entries):
    return [entry.guard_type == "TENSOR_MATCH" for entry in entries]


class Bank:
    def __init__(self):
        self.damping = 0.02
        self.stiff = torch.rand(1, COUNT, device="cuda") + 0.5
        self.advance = torch.compile(self.swing, options={"guard_filter_fn": tensors_only})

    def swing(self, angle, speed):
        for _ in range(6):
            pull = -self.stiff * torch.sin(angle)
            pull = pull + 0.1 * (angle.roll(1, 1) - angle) + 0.1 * (angle.roll(-1, 1) - angle)
            speed = speed + 0.01 * (pull - self.damping * speed)
            angle = angle + 0.01 * speed
        return angle, speed

    def tighten(self, step):
        self.damping = 0.02 + 0.05 * (step // 100)
        return self.damping


def energy(angle, speed):
    return (0.5 * speed.square() + 1.0 - torch.cos(angle)).mean()


@torch.no_grad()
def main():
    bank = Bank()
    angle = torch.randn(BANKS, COUNT, device="cuda")
    speed = torch.randn(BANKS, COUNT, device="cuda")
    for step in range(STEPS):
        if step % 100 == 0:
            bank.tighten(step)
        angle, speed = bank.advance(angle, speed)
        if step % 1000 == 0:
            print("tick", step, "energy", round(energy(angle, speed).item(), 5))
    print("final energy", round(energy(angle, speed).item(), 6))


main()
