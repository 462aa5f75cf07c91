import hashlib
import io
import zlib

import torch


class Hangar:
    """Where the pilots in the arenas fetch what was learned; each gets the newest weights only."""

    def __init__(self, places=4):
        self.shelf, self.version, self.places = {}, 0, places

    def publish(self, pilot):
        parcel = io.BytesIO()
        torch.save(pilot.state_dict(), parcel)
        packed = zlib.compress(parcel.getvalue(), level=1)
        self.version += 1
        self.shelf[self.version] = (hashlib.sha1(packed).hexdigest(), packed)
        self.shelf.pop(self.version - self.places, None)
        return self.version
