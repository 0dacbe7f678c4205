"""Looking at a trained model: its attention, its embedding, its mistakes; as one page or piece by piece in Python."""

from cagat.errors import CagatError

try:
    import pandas  # noqa: F401
    import plotly  # noqa: F401
except ImportError as error:
    raise CagatError(
        f"cagat.explore needs the package {error.name}. Install what it needs with: pip install 'cagat[explore]'"
    ) from error

from cagat.explore.agreement import attention_agreement
from cagat.explore.attention_layers import NoAttentionError
from cagat.explore.confusion import confusion
from cagat.explore.course import course
from cagat.explore.embedding import embedding
from cagat.explore.entropy import entropy
from cagat.explore.explorer_page import write_page
from cagat.explore.neighbourhood import neighbourhood
from cagat.explore.view import View

__all__ = [
    "NoAttentionError",
    "View",
    "attention_agreement",
    "confusion",
    "course",
    "embedding",
    "entropy",
    "neighbourhood",
    "write_page",
]
