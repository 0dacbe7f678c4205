"""Fitting a network to the labels of a few nodes."""

from cagat.training.early_stopping import EarlyStopping
from cagat.training.fit import Epoch, FitOptions, FitResult, accuracy, fit

__all__ = ["EarlyStopping", "Epoch", "FitOptions", "FitResult", "accuracy", "fit"]
