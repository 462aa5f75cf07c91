"""What the rest of the package does with torch."""

JITTER = 1e-5
TRIES = 3
COMPILE = {"backend": "inductor", "dynamic": False}
