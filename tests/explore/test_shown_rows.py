import numpy as np
import pytest
import torch

from cagat.explore import shown_rows
from cagat.explore.attention_layers import attention_layers
from cagat.explore.shown_rows import STRONGEST, ShownRows

NODES = torch.tensor([2, 7, 30])


@pytest.mark.parametrize("block", [1, 2**24])
def test_rows_are_cut_down_to_what_is_strongest(run, block, monkeypatch):
    monkeypatch.setattr(shown_rows, "_BLOCK_NUMBERS", block)
    layer = attention_layers(run)[0]
    found = ShownRows.of(layer, NODES)
    assert found.others.shape == (2, 4, 3, STRONGEST)
    for done in range(3):
        rows = layer.after(done).rows(NODES).numpy()
        for place, row in enumerate(rows):
            edges = slice(found.offsets[place], found.offsets[place + 1])
            neighbours = found.neighbours[edges]
            assert NODES[place] in neighbours
            np.testing.assert_allclose(found.on_edges[done, edges], row[:, neighbours].T)
            shares = np.maximum(row, 0) / np.maximum(row, 0).sum(axis=1, keepdims=True)
            bits = -(shares * np.log2(np.where(shares > 0, shares, 1))).sum(axis=1).mean()
            assert found.entropy[done, place] == pytest.approx(bits, rel=1e-5)
            if done:
                off = row.copy()
                off[:, neighbours] = 0
                for column, values in enumerate([*off, off.mean(axis=0)]):
                    best = np.sort(values)[::-1][:STRONGEST]
                    np.testing.assert_allclose(found.other_values[done - 1, column, place], best, rtol=1e-5)
                    np.testing.assert_allclose(values[found.others[done - 1, column, place]], best, rtol=1e-5)


def test_without_context_there_are_no_other_pairs(gat_run):
    found = ShownRows.of(attention_layers(gat_run)[0], NODES)
    assert found.others.size == 0
    assert found.on_edges.shape[0] == 1
