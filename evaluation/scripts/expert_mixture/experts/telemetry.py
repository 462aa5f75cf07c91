class Usage:
    def __init__(self):
        self.calls = 0
        self.level = 0.0

    def note(self, out):
        self.calls += 1
        self.level = float(out.mean())


usage = Usage()
