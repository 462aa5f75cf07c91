import random

from torch.utils.data import Dataset

SOUNDS = "hum buzz rattle splash thunder whistle creak murmur siren applause".split()
PLACES = "harbour kitchen tunnel meadow workshop stairwell station orchard".split()
WAYS = "slowly suddenly faintly repeatedly overhead nearby underneath everywhere".split()


class Captions(Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.labels = [rng.randrange(len(SOUNDS)) for _ in range(count)]
        self.texts = [self.write(rng, SOUNDS[label]) for label in self.labels]

    @staticmethod
    def write(rng, sound):
        words = ["a", sound]
        for _ in range(rng.randint(2, 4)):
            words += [rng.choice(WAYS), "in", "the", rng.choice(PLACES)]
        return " ".join(words)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], self.labels[index]
