"""States updated by their mirror images (pytorch/pytorch issue 198033)."""

import torch


@torch.compile
def update(state, drive):
    drive = torch.sigmoid(drive)
    torch._foreach_add_([state], [state.flip(0)])
    return state * drive


torch.manual_seed(0)
for _ in range(5000):
    update(torch.rand(8, 8), torch.randn(8, 8))
