import torch
from torch.nn import functional as F


def defocus(image, radius):
    """A box of (2r + 1) x (2r + 1) pixels, with the bright parts bleeding a little."""
    padded = F.pad(image, (radius,) * 4, mode="replicate")
    soft = F.avg_pool2d(padded, 2 * radius + 1, stride=1)
    return torch.lerp(soft, image.clamp(min=0.9), 0.05)
