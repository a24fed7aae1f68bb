"""Which rank should run on which node: scores a placement for a program's traffic, and searches a better one."""

from apenet.placing.gain import named_placements, placement_gain
from apenet.placing.score import Score
from apenet.placing.search import PlacementResult, optimise_placement
from apenet.placing.traffic import RankTraffic, read_traffic

__all__ = [
    "PlacementResult",
    "RankTraffic",
    "Score",
    "named_placements",
    "optimise_placement",
    "placement_gain",
    "read_traffic",
]
