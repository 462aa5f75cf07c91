"""Where in the recording we are; everybody reads it, main() moves it on."""

frame = 0
settle = 400


def settled():
    return min(1.0, frame / settle)
