"""Fitting a model to the labels of a few nodes, and runs of it that can be interrupted at any moment."""

from cagat.settings import FitOptions, TrainConfig
from cagat.training.early_stopping import EarlyStopping
from cagat.training.fit import FitResult, fit
from cagat.training.follower import follow
from cagat.training.outputs import RunResult
from cagat.training.plans.full_batch import accuracy_of
from cagat.training.run import Run
from cagat.training.trained_run import TrainedRun
from cagat.training.trainer import DivergedError, Epoch, Trainer, accuracy

__all__ = [
    "DivergedError",
    "EarlyStopping",
    "Epoch",
    "FitOptions",
    "FitResult",
    "Run",
    "RunResult",
    "TrainConfig",
    "TrainedRun",
    "Trainer",
    "accuracy",
    "accuracy_of",
    "fit",
    "follow",
]
