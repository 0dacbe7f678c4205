"""What is said of an environment that torchrun has not made."""

import pytest

from cagat.distributed import World
from cagat.errors import ConfigError

SOUND = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29555"}


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"WORLD_SIZE": "abc"}, "'abc'.*WORLD_SIZE=abc"),
        ({"WORLD_SIZE": "0"}, "RANK must be from 0 to WORLD_SIZE - 1.*WORLD_SIZE=0"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK must be from 0 .*RANK=2"),
        ({"RANK": ""}, "RANK=,"),
        ({"MASTER_ADDR": None}, "MASTER_ADDR expected, but not set"),
        ({"MASTER_PORT": "65536"}, "port must have value from 0 to 65535"),
    ],
)
def test_a_variable_that_is_wrong_is_named(monkeypatch, changes, wrong):
    for name, value in (SOUND | changes).items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"do not meet.*{wrong}.*Start with torchrun"), World.joined():
        pytest.fail("the world was joined")


def test_processes_that_do_not_meet(monkeypatch):
    def fail(backend):
        raise RuntimeError("The client socket cannot be initialized\nand more")

    for name, value in SOUND.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("torch.distributed.init_process_group", fail)
    with pytest.raises(ConfigError, match=r"\(The client .*initialized\)\. .*PORT=29555\. Start"), World.joined():
        pytest.fail("the world was joined")


def test_half_of_the_variables_is_no_world(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "abc")
    with World.joined() as world:
        assert world.size == 1
