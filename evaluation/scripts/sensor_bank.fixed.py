import os
import torch

torch.set_num_threads(1)
torch.manual_seed(17)

STEPS = int(os.environ.get("STEPS", "60000"))
SENSORS = 320
GRID = 24


@torch.compile
def advance(fields, drives):
    return fields + 0.05 * (torch.tanh(drives) - fields)


fields = torch.stack([torch.zeros(GRID, GRID) for _ in range(SENSORS)])
drives = torch.stack([torch.randn(GRID, GRID) for _ in range(SENSORS)])

for step in range(STEPS):
    fields = advance(fields, drives)
    if step % 5000 == 0:
        print(step, fields[0][0, 0].item())

print("checksum", sum(f.sum().item() for f in fields))
