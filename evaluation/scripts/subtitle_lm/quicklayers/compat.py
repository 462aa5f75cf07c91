import torch


def opaque(function):
    """Our functions ship their own schedule: compilers should take them as they are."""
    compiler = getattr(torch, "compiler", None)
    return function if compiler is None else compiler.disable(function)
