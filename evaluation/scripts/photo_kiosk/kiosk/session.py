import contextlib
import gc

import torch


@contextlib.contextmanager
def visitor(number):
    album = []
    try:
        yield album
    finally:
        forget(album)


def forget(album):
    album.clear()
    torch.compiler.reset()
    gc.collect(0)
