"""Looking at a trained model: its attention, its embedding, its mistakes; as one page or piece by piece in Python."""

from cagat.errors import CagatError

try:
    import pandas  # noqa: F401
    import plotly  # noqa: F401
except ImportError as error:
    raise CagatError(f"cagat.explore needs the package {error.name}: pip install 'cagat[explore]'") from error

from cagat.explore.agreement import attention_agreement
from cagat.explore.explored_run import NoAttentionError, View
from cagat.explore.explorer_page import write_page
from cagat.explore.neighbourhood import neighbourhood
from cagat.explore.overview import confusion, embedding, entropy, training_curves

__all__ = [
    "NoAttentionError",
    "View",
    "attention_agreement",
    "confusion",
    "embedding",
    "entropy",
    "neighbourhood",
    "training_curves",
    "write_page",
]
