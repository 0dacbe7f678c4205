"""Fitting a model to the labels of a few nodes."""

from cagat.training.early_stopping import EarlyStopping
from cagat.training.fit import FitResult, fit
from cagat.training.trainer import DivergedError, Epoch, FitOptions, Trainer, accuracy, accuracy_of

__all__ = [
    "DivergedError",
    "EarlyStopping",
    "Epoch",
    "FitOptions",
    "FitResult",
    "Trainer",
    "accuracy",
    "accuracy_of",
    "fit",
]
