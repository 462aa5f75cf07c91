RATE = 16000


def clip_lengths(shortest=0.050, longest=0.126, step=0.002):
    """Lengths in samples of the clips that the recorder can make."""
    count = round((longest - shortest) / step) + 1
    return [round(RATE * (shortest + step * i)) for i in range(count)]
