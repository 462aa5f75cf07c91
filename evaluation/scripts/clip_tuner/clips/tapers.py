import torch


class TaperMixin:
    """Buffers for every clip length, so that none is made while clips come in."""

    def add_tapers(self, lengths):
        for n in lengths:
            self.register_buffer(f"taper_{n}", torch.hann_window(n, periodic=False), persistent=False)

    def taper(self, clip):
        return clip * getattr(self, f"taper_{clip.shape[-1]}")
