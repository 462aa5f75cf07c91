from dataclasses import dataclass, fields
from urllib.parse import parse_qsl


@dataclass(frozen=True)
class Wishes:
    denoise: bool = True
    dereverb: bool = False
    level: bool = True
    warm: bool = False

    @classmethod
    def parse(cls, query):
        given = dict(parse_qsl(query))
        return cls(**{f.name: given.get(f.name, "off") == "on" for f in fields(cls)})
