class NoTarget(Exception):
    """Nothing in the sector is louder than the noise."""


class Jammed(Exception):
    """Everything in the sector is louder than the noise."""
