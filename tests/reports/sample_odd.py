"""Numbers that no run measures, in every place for one."""

import msgspec
from msgspec import structs

ODD = (float("nan"), float("inf"), -1.0, 0.0, 1e308, -1e308, 5e-324, None)


class Odd:
    """Hands out the odd numbers in turn."""

    def __init__(self, turn):
        self.turn = turn

    def number(self):
        self.turn += 1
        return ODD[self.turn % len(ODD)]


def bend(value, odd):
    """The same shape with other numbers; whole ones stay whole, as their field has to be."""
    if isinstance(value, float):
        number = odd.number()
        return 0.0 if number is None else number
    if isinstance(value, msgspec.Struct):
        return structs.replace(
            value,
            **{f.name: bend(getattr(value, f.name), odd) for f in structs.fields(value)},
        )
    if isinstance(value, tuple):
        return tuple(bend(item, odd) for item in value)
    if isinstance(value, dict):
        return {key: bend(item, odd) for key, item in value.items()}
    return value
