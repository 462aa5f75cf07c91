from . import encoder  # noqa: F401  registers itself
from .registry import BUILDERS
from .settings import Settings


class UnitService:
    def __init__(self, section):
        self._settings = Settings(section)
        self._encode = BUILDERS["units"](self._settings)

    def __getattr__(self, name):
        return getattr(self._settings, name)

    def units(self, wave):
        return self._encode(wave)
