import math

LEVELS = 1000
STRENGTH = {t: 0.2 + 0.8 * math.cos(0.5 * math.pi * t / LEVELS) ** 2 for t in range(LEVELS)}
