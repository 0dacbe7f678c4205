"""What holds for the data room as a whole."""

from pathlib import Path

import cagat.data


def test_nothing_in_it_unpickles_or_evaluates():
    words = ("pickle.load", "allow_pickle=True", "import pickle\n", "torch.load", "eval(", "exec(", "shell=True")
    for path in Path(cagat.data.__file__).parent.rglob("*.py"):
        for word in words:
            assert word not in path.read_text(), f"{path.name}: {word}"


def test_every_public_name_is_there():
    for name in cagat.data.__all__:
        assert callable(getattr(cagat.data, name))
    assert set(cagat.data.__all__) <= set(dir(cagat.data))
