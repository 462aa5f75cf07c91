class Sheet:
    """What has been written so far, one thought a word."""

    def __init__(self, poems):
        self.poems = poems
        self.lines = []

    def keep(self, thought):
        self.lines.append(thought)
