from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    steps: int = 4000
    batch: int = 8
    length: int = 48
    vocabulary: int = 300
    width: int = 64
    layers: int = 2
    lr: float = 3e-4
    report: int = 200
    compile: bool = True
