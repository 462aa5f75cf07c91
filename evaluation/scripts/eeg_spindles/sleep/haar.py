import torch
import torch.nn.functional as F


def pad_to_power(signal):
    """Zeros at the end, up to the next power of two."""
    length = signal.shape[-1]
    full = 1 << (length - 1).bit_length()
    return F.pad(signal, (0, full - length))


def split(signal, levels):
    details = []
    for _ in range(levels):
        even, odd = signal[..., 0::2], signal[..., 1::2]
        details.append((even - odd) * 0.5)
        signal = (even + odd) * 0.5
    return signal, details


def join(signal, details):
    for detail in reversed(details):
        signal = torch.stack((signal + detail, signal - detail), -1).flatten(-2)
    return signal
