"""Learn the order of one long list, whose items are spread over processes, and go on after a crash.

    torchrun --standalone --nproc-per-node 4 -m examples.one_list

Each process scores its own items. The loss compares all of them: scores are gathered, each process takes its
columns of P, and gradients go back to the process that has the item. Every few steps all processes write a
checkpoint; a run that is started again goes on from the last one, on any number of processes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click
import torch
import torch.distributed.checkpoint as checkpoint
from scipy.stats import spearmanr
from torch import Tensor
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Shard, distribute_module, distribute_tensor

import nsc

FEATURES = 16


def draw_items(n: int) -> tuple[Tensor, Tensor]:
    """Return features (n, FEATURES) and the items' true ranks (1, n), the same in all processes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, FEATURES, generator=generator)
    score = x @ torch.randn(FEATURES, generator=generator) / FEATURES**0.5
    score = score + 0.5 * score.sin() + 0.1 * torch.randn(n, generator=generator)
    return x, score.argsort().argsort().unsqueeze(0)


def last_checkpoint(folder: Path) -> int:
    """Return the step of the newest whole checkpoint, 0 without one."""
    # torch writes this file last.
    return max((int(each.parent.name) for each in folder.glob("*/.metadata")), default=0)


class Training:
    """A model, its optimizer, and the list.

    Args:
        n: number of items.
        mesh: the processes.
        folder: of checkpoints.
    """

    def __init__(self, n: int, mesh: DeviceMesh, folder: Path) -> None:
        torch.manual_seed(0)
        layers = torch.nn.Linear(FEATURES, 64), torch.nn.SiLU(), torch.nn.Linear(64, 1)
        self.model = distribute_module(torch.nn.Sequential(*layers), mesh)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.operator, self.folder = nsc.compile("bitonic", n), folder
        x, ranks = draw_items(n)
        self.x, self.ranks = (
            distribute_tensor(x, mesh, [Shard(0)]),
            distribute_tensor(ranks, mesh, [Shard(1)]),
        )
        self.step = last_checkpoint(folder)
        if self.step:
            state = self._state()
            checkpoint.load(state, checkpoint_id=folder / str(self.step))
            set_state_dict(
                self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"]
            )

    def scores(self) -> Any:
        """Return the scores (1, n), of which each process has the scores of its items."""
        return self.model(self.x).transpose(0, 1)

    def advance(self) -> float:
        """Take a step, and return the loss before it."""
        self.optimizer.zero_grad()
        loss = self.operator.cross_entropy(self.scores(), self.ranks, steepness=200.0)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def save(self) -> None:
        """Write a checkpoint, and remove the older ones."""
        checkpoint.save(self._state(), checkpoint_id=self.folder / str(self.step))
        if torch.distributed.get_rank() == 0:
            for each in self.folder.iterdir():
                if int(each.name) < self.step:
                    shutil.rmtree(each)

    def _state(self) -> dict[str, Any]:
        model, optim = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optim}


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--items", type=click.IntRange(2), default=4096, help="Of the list, a power of two.")
@click.option("--steps", type=click.IntRange(1), default=100, help="Steps of the training.")
@click.option("--every", type=click.IntRange(1), default=20, help="Steps between two checkpoints.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("examples/output/one_list"),
    help="Of checkpoints.",
)
def main(items: int, steps: int, every: int, folder: Path) -> None:
    """Learn the order of one list whose items are spread over the processes of torchrun."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.distributed.init_process_group("gloo")
    try:
        mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        training = Training(items, mesh, folder)
        is_first = mesh.get_rank() == 0
        if is_first and training.step:
            click.echo(f"goes on from step {training.step}")
        while training.step < steps:
            loss = training.advance()
            if training.step % every == 0 or training.step == steps:
                training.save()
                if is_first:
                    click.echo(f"step {training.step}: loss {loss:.4f}")
        scores, ranks = training.scores().full_tensor().detach(), training.ranks.full_tensor()
        if is_first:
            found = spearmanr(scores[0], ranks[0]).statistic
            click.echo(f"Spearman's correlation of scores and true ranks: {found:.4f}")
    finally:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
