from .block import GlossTagger
from .ledger import LEDGER
