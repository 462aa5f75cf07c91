import torch


def require_finite(name, value):
    """Stop at once when a value has run away."""
    if not torch.isfinite(value).all():
        raise FloatingPointError(f"{name} is not finite")
    return value
