import pytest
import torch

from cagat.data.splits import Split
from cagat.training.calibration import expected_calibration_error
from cagat.training.evaluation import Evaluation, draw_reliability

NONE = torch.empty(0, dtype=torch.long)


def predictions(count: int = 500, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shares = (2 * torch.randn(count, 3, generator=generator, dtype=torch.float64)).softmax(dim=1)
    return shares, torch.multinomial(shares, 1, generator=generator).squeeze(1)


def test_by_parts():
    shares, truth = predictions(60)
    split = Split(torch.arange(10), torch.arange(10, 20), torch.arange(20, 60))
    found = Evaluation.of(shares, truth, ["a", "b", "c"], split)
    assert found.sizes == {"train": 10, "val": 10, "test": 40}
    assert found.measured_on == "test"
    assert found.accuracy["test"] == (shares.argmax(dim=1) == truth)[20:].double().mean().item()
    low, high = found.intervals["test"]
    assert low < found.accuracy["test"] < high
    assert found.calibration_error == pytest.approx(100 * expected_calibration_error(shares[20:], truth[20:]))
    assert sum(score.nodes for score in found.classes) == 40
    assert found.as_dict()["reliability"][0].keys() == {"nodes", "confidence", "accuracy"}


def test_without_test_nodes_it_is_measured_out_of_fold_or_not_at_all(tmp_path):
    shares, truth = predictions(60)
    split = Split(torch.arange(60), NONE, NONE)
    found = Evaluation.of(shares, truth, ["a", "b", "c"], split)
    assert found.measured_on is found.calibration_error is None
    assert found.reliability == []
    folded = Evaluation.of(shares, truth, ["a", "b", "c"], split, predictions(60, seed=1))
    assert folded.measured_on == "out_of_fold"
    assert folded.sizes == {"train": 60, "out_of_fold": 60}
    draw_reliability(folded, tmp_path / "reliability.png")
    assert (tmp_path / "reliability.png").read_bytes().startswith(b"\x89PNG")
