import torch

from . import settings


def psd_safe_cholesky(matrix):
    """Cholesky factor; what is not positive definite gets more and more on its diagonal."""
    factor, info = torch.linalg.cholesky_ex(matrix)
    if not torch.any(info):
        return factor
    return _with_jitter(matrix)


@torch.compiler.disable
def _with_jitter(matrix):
    jitter = settings.JITTER
    for _ in range(settings.TRIES):
        factor, info = torch.linalg.cholesky_ex(matrix + jitter * torch.eye(len(matrix)))
        if not info.any():
            return factor
        jitter *= 10
    raise ValueError(f"not positive definite, even with {jitter:g} on the diagonal")
