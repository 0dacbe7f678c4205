"""Fitting a model to the labels of a few nodes, and runs of it that can be interrupted at any moment."""

from cagat.settings import FitOptions, TrainConfig
from cagat.training.outputs import RunResult
from cagat.training.run import Run, join_run
from cagat.training.trained_run import TrainedRun
from cagat.training.trainer import (
    DivergedError,
    Epoch,
    EpochPlan,
    FitResult,
    FullBatch,
    Trainer,
    accuracy,
    accuracy_of,
    fit,
)

__all__ = [
    "DivergedError",
    "Epoch",
    "EpochPlan",
    "FitOptions",
    "FitResult",
    "FullBatch",
    "Run",
    "RunResult",
    "TrainConfig",
    "TrainedRun",
    "Trainer",
    "accuracy",
    "accuracy_of",
    "fit",
    "join_run",
]
