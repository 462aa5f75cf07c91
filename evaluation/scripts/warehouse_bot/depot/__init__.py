from .memory import Memory
from .nets import Picker
