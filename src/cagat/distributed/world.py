"""The processes that work together, and what they tell each other."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import safetensors.torch
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from cagat.distributed.watch import Watch
from cagat.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True)
class Traffic:
    """Bytes that one process has sent as rows of a halo or their gradients, and has put into sums over all processes.

    A ring sends a little less than twice what is summed.
    """

    halo: int = 0
    reduced: int = 0

    def __sub__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.halo - other.halo, self.reduced - other.reduced)


@dataclass
class World:
    """All processes that train one model, seen from one of them; alone, it is a world of one."""

    rank: int = 0
    size: int = 1
    traffic: Traffic = Traffic()

    @classmethod
    @contextlib.contextmanager
    def joined(cls) -> "Iterator[World]":
        """Join the world that `torchrun` describes in the environment, or be alone where there is none.

        Communication is by gloo between CPUs and by nccl between GPUs. While the world lasts, each process watches the
        others: when one dies, all end within seconds with a message that names it.
        """
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            yield cls()
            return
        try:
            # Of these torch would believe anything, and wait for processes that never come.
            if not 0 <= int(os.environ["RANK"]) < int(os.environ["WORLD_SIZE"]):
                raise ValueError("RANK must be from 0 to WORLD_SIZE - 1")
            dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        except (ValueError, RuntimeError) as error:
            names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
            given = ", ".join(f"{name}={os.environ.get(name, ''):.40}" for name in names)
            raise ConfigError(
                f"The processes do not meet ({str(error).splitlines()[0]}). The environment says {given}. Start with "
                "torchrun, which sets them all; or, to train alone, unset RANK and WORLD_SIZE."
            ) from error
        try:
            world = cls(dist.get_rank(), dist.get_world_size())
            with Watch.over(world.rank, world.size):
                yield world
        finally:
            dist.destroy_process_group()

    @property
    def meets_in_passes(self) -> bool:
        """Whether processes can exchange in the middle of a compiled pass."""
        return True

    @property
    def is_first(self) -> bool:
        """Whether this is the process that reads and writes the run directory."""
        return self.rank == 0

    def device(self, name: str) -> str:
        """The device of this process, where each process of a machine has a GPU of its own."""
        if self.size == 1 or torch.device(name).type != "cuda":
            return name
        local, count = int(os.environ.get("LOCAL_RANK", self.rank)), torch.cuda.device_count()
        if local >= count:
            raise ConfigError(
                f"Rank {self.rank} has no GPU of its own: there are {count} on this machine. Start fewer processes "
                "with --nproc-per-node, or use --device cpu."
            )
        return f"cuda:{local}"

    def kept(self, array: NDArray[Any]) -> NDArray[Any]:
        """An array as this process keeps it for as long as it works."""
        return array

    def share(self, value: T | None) -> T:
        """What the first process has, for all: any JSON value."""
        return self.all_of(value)[0]  # type: ignore[return-value]

    def share_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors that the first process has, for all; the other processes may give none."""
        if self.size == 1:
            return dict(tensors)
        content = safetensors.torch.save(dict(tensors)) if self.is_first else b""
        # Not by torch's own way of sending objects, which unpickles whatever arrives.
        sent = _bytes_tensor(content.ljust(self.share(len(content))))
        self.broadcast(sent)
        return safetensors.torch.load(sent.numpy().tobytes())

    def any(self, wish: bool) -> bool:
        """Whether any process wishes it; all get the same answer."""
        return any(self.all_of(wish))

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, without gradient."""
        if self.size == 1:
            return tensor
        total = tensor.detach().clone(memory_format=torch.contiguous_format)
        self.traffic = replace(self.traffic, reduced=self.traffic.reduced + total.nbytes)
        dist.all_reduce(total)
        return total

    def broadcast(self, tensor: Tensor) -> None:
        """Make a tensor what it is in the first process."""
        if self.size > 1:
            dist.broadcast(tensor.detach(), src=0)

    def exchange(self, rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        """Send the next ``sent[i]`` rows to process i, for all i, and return the ``received[i]`` that each sent."""
        arrived = rows.new_empty(sum(received), *rows.shape[1:])
        self.traffic = replace(self.traffic, halo=self.traffic.halo + rows.nbytes)
        dist.all_to_all_single(arrived, rows.contiguous(), received, sent)
        return arrived

    def swap(self, rank: int, sent: Tensor, arriving: Tensor) -> list[dist.Work]:
        """Begin to send a tensor to another process and to receive one; both must stay as they are until it is done."""
        works = []
        if arriving.numel():
            works.append(dist.irecv(arriving, src=rank))
        if sent.numel():
            self.traffic = replace(self.traffic, halo=self.traffic.halo + sent.nbytes)
            works.append(dist.isend(sent, dst=rank))
        return [work for work in works if work is not None]

    def all_of(self, value: T) -> list[T]:
        """The JSON values of all processes, in their order."""
        if self.size == 1:
            return [value]
        packed = _bytes_tensor(json.dumps(value).encode())
        sizes = [torch.empty(1, dtype=torch.long) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor([packed.numel()]))
        # All tensors that are gathered must be equally long.
        gathered = [torch.empty(int(max(sizes)), dtype=torch.uint8) for _ in range(self.size)]
        dist.all_gather(gathered, F.pad(packed, (0, gathered[0].numel() - packed.numel())))
        return [json.loads(one[: int(size)].numpy().tobytes()) for one, size in zip(gathered, sizes, strict=True)]

    def to_first(self, rows: Tensor, counts: list[int]) -> Tensor | None:
        """The rows of all processes one after the other, in the first process; in the others, nothing."""
        if self.size == 1:
            return rows
        none = [0] * self.size
        arrived = self.exchange(rows, [rows.size(0), *none[1:]], counts if self.is_first else none)
        return arrived if self.is_first else None

    def from_first(self, rows: Tensor, counts: list[int]) -> Tensor:
        """The rows of this process, from the first one, which has those of all; others give an empty tensor."""
        if self.size == 1:
            return rows
        none = [0] * self.size
        return self.exchange(rows, counts if self.is_first else none, [counts[self.rank], *none[1:]])


def _bytes_tensor(content: bytes) -> Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)
