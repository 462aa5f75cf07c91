from configparser import ConfigParser

DEFAULTS = """
[base]
codes = 64
width = 40
hop = 40
skip_compile = no
dynamic =

[large]
codes = 512
width = 96
hop = 20
skip_compile = no
dynamic =
"""


class Settings:
    """Reads like an object; numbers become numbers."""

    def __init__(self, section):
        parser = ConfigParser()
        parser.read_string(DEFAULTS)
        self._values = dict(parser[section])

    def __getattr__(self, name):
        try:
            value = self._values[name]
        except KeyError:
            raise AttributeError(name) from None
        if value.isdigit():
            return int(value)
        return value or None
