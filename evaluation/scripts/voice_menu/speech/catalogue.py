import itertools
from dataclasses import dataclass, field

import torch

VOICES = ["ada", "bruno", "chiara", "dmitri", "elif", "farid", "greta", "hiro",
          "ines", "jonas", "katya", "luca", "mira", "nils", "oona", "pavel",
          "quinn", "rosa", "sven", "tara", "uma", "viktor", "wanda", "yusuf"]


@dataclass(frozen=True)
class Prompt:
    phonemes: torch.Tensor
    voice: str = field(default="ada")


def prompts(length=120):
    texts = [torch.randint(0, 60, (1, length)) for _ in range(7)]
    for number in itertools.count():
        yield Prompt(texts[number % len(texts)], VOICES[number % len(VOICES)])
