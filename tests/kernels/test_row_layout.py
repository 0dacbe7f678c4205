import pytest
import torch

from cagat.kernels.row_layout import row_layout


@pytest.mark.parametrize(
    ("heads", "channels", "dtype", "lanes", "width"),
    [
        (8, 8, torch.float32, 64, 64),
        (8, 8, torch.float64, 32, 64),
        (1, 7, torch.float32, 8, 8),
        (1, 3, torch.float32, 4, 4),
        (1, 1, torch.float64, 4, 4),
        (3, 3, torch.float32, 16, 16),
        (8, 12, torch.float32, 32, 96),
        (8, 32, torch.float32, 64, 256),
    ],
)
def test_parts_are_powers_of_two_and_pad_little(heads, channels, dtype, lanes, width):
    layout = row_layout(heads, channels, dtype)
    assert (layout.lanes, layout.width) == (lanes, width)
    assert layout.is_possible


@pytest.mark.parametrize(("heads", "channels"), [(8, 8), (1, 7), (3, 3), (8, 12), (5, 9)])
def test_there_and_back(heads, channels):
    layout = row_layout(heads, channels, torch.float32)
    features, values = torch.randn(6, heads, channels), torch.randn(10, heads)
    rows = layout.rows(features)
    assert rows.shape == (layout.panels, 6, layout.lanes)
    assert rows.abs().sum() == pytest.approx(features.abs().sum().item(), rel=1e-5)
    assert torch.equal(layout.features(rows), features)
    assert layout.values(values).shape == (10, layout.padded_heads)
    assert torch.equal(layout.unpadded(layout.values(values)), values)


def test_channels_come_before_heads():
    features = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    assert row_layout(2, 2, torch.float32).rows(features).tolist() == [[[1, 3, 2, 4]]]


def test_too_many_heads_and_no_features_at_all():
    assert not row_layout(65, 1, torch.float32).is_possible
    assert not row_layout(3, 0, torch.float32).is_possible
