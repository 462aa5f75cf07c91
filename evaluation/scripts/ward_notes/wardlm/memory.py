"""Keeps the footprint of long notes small on the ward's little machines."""
import gc


class Thrifty:
    """Mixin for modules that drop what they no longer need between their parts."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.freed = []

    def tidy(self, *leftovers):
        del leftovers
        gc.collect(generation=1)
