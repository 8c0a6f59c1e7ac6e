"""Where the runs of a table differ from the paper's: sentences for its page."""

from __future__ import annotations

from experiments import data as sources
from experiments.profiles import PROFILES, Profile
from experiments.tables.plan import PAPER_BATCH, PAPER_STEPS, Settings, model_of

PAPER_SEEDS = 5


def is_paper(profile: Profile) -> bool:
    """Return whether a profile is the paper's protocol."""
    return profile.name == "paper"


def data_and_seeds(
    settings: Settings, data: tuple[str, ...] = ("mnist",), seeds: int = PAPER_SEEDS
) -> list[str]:
    """Return what differs in the data and the number of runs.

    Args:
        settings: of the table.
        data: the paper's.
        seeds: runs that the paper averages over.
    """
    sentences = []
    if tuple(name for name, _ in settings.data) != data:
        titles, papers = (
            " and ".join(sources.find(name).title for name in names)
            for names in ([name for name, _ in settings.data], data)
        )
        sentences.append(f"The data are {titles}; the paper's numbers are of {papers}.")
    if settings.seeds != seeds:
        sentences.append(f"Runs of each cell: {settings.seeds}; the paper has {seeds}.")
    return sentences


def training_differences(settings: Settings) -> list[str]:
    """Return what differs in the images, the model, the rate and what is measured."""
    profile, paper = settings.profile, PROFILES["paper"]
    sentences = []
    side = sources.find(settings.data[0][0]).side
    if profile.side is not None and profile.side < side and model_of(settings) != "svhn":
        sentences.append(f"Digits of {side}×{side} are pooled to {profile.side}×{profile.side}.")
    if model_of(settings) not in (paper.model, "svhn"):
        sentences.append(f"The model is {model_of(settings)!r}, which has half the paper's filters.")
    if profile.learning_rate != paper.learning_rate:
        cycle = " at the peak of one cycle" if profile.one_cycle else ""
        sentences.append(f"The rate is {profile.learning_rate:g}{cycle}; the paper's is 10^-3.5 throughout.")
    if profile.noise:
        sentences.append(f"Training images have noise of deviation {profile.noise:g}; the paper names none.")
    sentences.append(
        f"Measured is the model of the best of {profile.validations} validations, on {profile.test:,} items; "
        "the paper does not say how many."
    )
    return sentences


def ranking_differences(settings: Settings, data: str = "mnist") -> tuple[str, ...]:
    """Return what differs in the tables of ranking that have the profile's batch and steps."""
    profile = settings.profile
    if profile.images is None:
        steps = f"The paper trains for up to 10^6 steps; here all runs have {PAPER_STEPS:,}."
    else:
        steps = (
            f"A run learns from {profile.images:,} images, about {profile.images_a_step} a step; the paper's "
            f"steps have {PAPER_BATCH} samples, and there are up to 10^6."
        )
    return (*data_and_seeds(settings, (data,)), steps, *training_differences(settings))
