"""Programs of checkpoints, ours and others."""

import io
import zipfile

import pytest
import torch

from cagat import models
from cagat.training import checkpoint_program
from cagat.training.checkpoint_program import check_program


def program_of(state) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    with zipfile.ZipFile(buffer) as archive:
        return archive.read("archive/data.pkl")


@pytest.mark.parametrize("name", models.names())
def test_the_states_of_every_model_are_ours(name):
    model = models.create(name, 5, 2)
    state = {"model": model.state_dict(), "more": model.training_state()}
    if not model.closed_form:
        optimizer = torch.optim.Adam(model.parameter_groups(0.1))
        model.zero_grad()
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        state["optimizer"] = optimizer.state_dict()
    check_program(program_of(state))


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64])
def test_tensors_of_many_kinds_are_ours(kind):
    check_program(program_of({"a": torch.zeros(2, 3, dtype=kind), 1: [None, True, 2**40, 0.5, "text", ()]}))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (b"}))\x86K\x01s", "a key of a dictionary is neither"),
        (b"}())\x86K\x01u", "a key of a dictionary is neither"),
        (b"K\x01\x85\x85\x85", "a tuple is longer or deeper"),
        (b"K\x01\x85\x80\x02q\x00h\x00h\x00\x86q\x01h\x01h\x01\x86", "a tuple is longer or deeper"),
        (b"(" + 17 * b"K\x01" + b"t", "a tuple is longer or deeper"),
        (b"cposix\nsystem\n", "more than numbers and texts: GLOBAL posix system"),
        (b"cbuiltins\nbytearray\n", "more than numbers and texts: GLOBAL builtins bytearray"),
        (b"U\x01a", "more than numbers and texts: SHORT_BINSTRING a"),
        (b"K\x010", "more than numbers and texts: POP"),
        (b"K\x012", "more than numbers and texts: DUP"),
        (b"ccollections\nOrderedDict\n]\x85R", "calls what is not called"),
        (b"ccollections\nOrderedDict\n]R", "calls what is not called"),
        (b"ctorch\nFloatStorage\n)R", "calls what is not called"),
        (b"K\x01)R", "calls what is not called"),
        (b"}" + 9 * b"}b", "more than 8 values with a state"),
    ],
)
def test_what_no_checkpoint_of_ours_has_is_refused(program, message):
    with pytest.raises(ValueError, match=message):
        check_program(b"\x80\x02" + program + b".")


@pytest.mark.parametrize("program", [b"t", b"K\x01(\x85", b"h\x05", b"R", b"u", b"a", b"q\x00", b"X\xff\0\0\0a"])
def test_what_is_no_program_is_refused(program):
    with pytest.raises((IndexError, KeyError, ValueError)):
        check_program(b"\x80\x02" + program + b".")


def test_very_long_programs_are_refused(monkeypatch):
    monkeypatch.setattr(checkpoint_program, "_MOST_INSTRUCTIONS", 50)
    with pytest.raises(ValueError, match="more than 50 values"):
        check_program(b"\x80\x02](" + 60 * b"K\x01" + b"e.")
