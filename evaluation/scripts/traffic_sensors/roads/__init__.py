from .diffusion import DiffusionBlock, TrafficNet
from .network import road_graph

__all__ = ["DiffusionBlock", "TrafficNet", "road_graph"]
