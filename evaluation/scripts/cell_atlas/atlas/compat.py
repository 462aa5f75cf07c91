"""Settings that the atlas has carried along since its first release."""
import os

import torch

PLAIN_OPS = (torch.sign, torch.hypot)


def prepare():
    os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")
    torch.set_float32_matmul_precision("high")
    for op in PLAIN_OPS:
        torch._dynamo.disallow_in_graph(op)
