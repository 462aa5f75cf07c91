from .blur import defocus
from .net import Unblur
