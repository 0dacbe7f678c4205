"""A picture and the numbers in it."""

import html
from dataclasses import dataclass
from functools import partial

import pandas as pd
import plotly.graph_objects as go

plain = partial(html.escape, quote=False)
"""Text that plotly shows as it is, although it takes tags for markup."""


@dataclass(frozen=True, eq=False)
class View:
    """What a function of :mod:`cagat.explore` returns; Jupyter shows it as its picture.

    Attributes:
        figure: The picture.
        frame: The numbers.
        caption: A sentence that says what to see.
        details: What exactly is counted, where that takes more than a sentence.
    """

    figure: go.Figure
    frame: pd.DataFrame
    caption: str
    details: str = ""

    def _repr_html_(self) -> str:
        """For Jupyter: with plotly in it, so that no network is needed."""
        return str(self.figure.to_html(full_html=False, include_plotlyjs=True))


def styled(figure: go.Figure, *, x: str = "", y: str = "", height: int = 380) -> go.Figure:
    """The figure in the style that all share."""
    axis = {"gridcolor": "#e6e8ec", "zeroline": False, "linecolor": "#9aa2ad", "ticks": "outside", "automargin": True}
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 56, "r": 12, "t": 12, "b": 48},
        font={"family": 'system-ui, "Segoe UI", "Liberation Sans", sans-serif', "size": 13, "color": "#222"},
        paper_bgcolor="#fff",
        plot_bgcolor="#fff",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        hoverlabel={"align": "left"},
    )
    figure.update_xaxes(title_text=x, **axis)
    figure.update_yaxes(title_text=y, **axis)
    return figure
