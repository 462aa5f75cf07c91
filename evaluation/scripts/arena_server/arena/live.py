"""Modules that follow their source while the server runs."""
import importlib


class LiveModule:
    def __init__(self, name):
        self.module = importlib.import_module(name)

    def latest(self):
        self.module = importlib.reload(self.module)
        return self.module
