"""CaGAT as a scikit-learn estimator."""

from cagat.estimator.classifier import CaGATClassifier

__all__ = ["CaGATClassifier"]
