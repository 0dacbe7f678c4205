"""The course of the training."""

import math

import pandas as pd
from plotly.subplots import make_subplots

from cagat.explore.subject import AnyRun, Subject
from cagat.explore.view import View, styled
from cagat.style import BLUE, GREY, ORANGE


def course(run: AnyRun | Subject) -> View | None:
    """Losses and validation accuracy, epoch by epoch; nothing for a model that is fitted at once.

    The frame has the columns `epoch`, `loss`, `val_loss` and `val_accuracy`.
    """
    subject = Subject.of(run)
    history = subject.run.directory.history()
    if not history:
        return None
    frame = pd.DataFrame(history).rename(columns={"number": "epoch"})
    # Of a run that nobody has tampered with, one is a number.
    best = int(frame["val_loss"].idxmin()) if frame["val_loss"].notna().any() else None
    validated = frame["val_accuracy"].notna().any()
    figure = make_subplots(rows=1, cols=1 + bool(validated), horizontal_spacing=0.12)
    pairs = (("loss", "training loss", BLUE, 1), ("val_loss", "validation loss", ORANGE, 1))
    accuracy = (("val_accuracy", "validation accuracy", ORANGE, 2),) if validated else ()
    for key, name, tint, column in (*pairs, *accuracy):
        figure.add_scatter(
            x=frame["epoch"],
            y=frame[key].round(5),
            mode="lines" if len(frame) > 1 else "markers",
            name=name,
            line={"color": tint, "dash": "dot" if column == 2 else "solid"},
            row=1,
            col=column,
        )
    for column in range(1, 2 + bool(validated)) if best is not None else ():
        figure.add_vline(
            x=int(frame["epoch"][best]), line={"color": GREY, "dash": "dot", "width": 1}, row=1, col=column
        )
    styled(figure, x="epoch")
    if validated:
        figure.update_yaxes(tickformat=".0%", row=1, col=2)
    return View(figure, frame, _caption(frame, best))


def _caption(frame: pd.DataFrame, best: int | None) -> str:
    if best is None:
        return f"No validation loss of the {len(frame)} epochs is a number, so that none of them is the best."
    accuracy_then = frame["val_accuracy"][best]
    right = "" if math.isnan(accuracy_then) else f", with {100 * accuracy_then:.1f} % right"
    return (
        f"The validation loss is lowest in epoch {int(frame['epoch'][best])} of {len(frame)} (dotted line){right}; the "
        "weights of that epoch are the ones shown here."
    )
