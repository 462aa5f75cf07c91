"""Temperature and moisture of a clay slab through a firing programme, reported stage by stage."""
import os
import time
import torch

torch.manual_seed(7)

NY, NX = 160, 224
DT = 0.02


def laplace(field):
    return (field.roll(1, 0) + field.roll(-1, 0) + field.roll(1, 1) + field.roll(-1, 1)) - 4.0 * field


def substep(temp, wet, rim, target):
    dry = wet * torch.sigmoid(0.05 * (temp - 120.0)) * 0.6
    conduct = (0.9 + 0.3 * torch.tanh(temp / 300.0)) * laplace(temp)
    new_t = temp + DT * (conduct - 40.0 * dry + 0.5 * (target - temp))
    new_w = (wet + DT * (0.4 * laplace(wet) - dry)).clamp(0.0, 1.0)
    return torch.where(rim, target, new_t), torch.where(rim, 0.0, new_w)


@torch.compile
def fire(temp, wet, rim, programme):
    """Runs through the programme and hands out the fields after each stage."""
    for target in programme:
        for _ in range(4):
            temp, wet = substep(temp, wet, rim, target)
        yield temp, wet


def main():
    start = time.time()
    stage = 0
    rim = torch.ones(NY, NX, dtype=torch.bool)
    rim[2:-2, 2:-2] = False
    for firing in range(int(os.environ.get("STEPS", "48"))):
        temp = 20.0 + 2.0 * torch.rand(NY, NX)
        wet = 0.3 + 0.1 * torch.rand(NY, NX)
        programme = torch.linspace(60.0 + firing, 950.0, 150).unbind()
        for temp, wet in fire(temp, wet, rim, programme):
            stage += 1
            if stage % 150 == 0:
                print(f"firing {firing}  stage {stage}  core {temp[80, 112].item():7.2f}C  "
                      f"wet {wet.mean().item():.4f}  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
