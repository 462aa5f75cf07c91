from functools import wraps

import torch

BUILDERS = {}


def model(name):
    def register(builder):
        @wraps(builder)
        def build(settings):
            return prepare(builder(settings), settings)

        BUILDERS[name] = build
        return builder

    return register


def prepare(module, settings):
    module = module.eval().requires_grad_(False)
    return torch.compile(module, dynamic=settings.dynamic, disable=settings.skip_compile)
