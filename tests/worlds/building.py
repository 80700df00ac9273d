"""Makes a world by the product's own functions, as people, files and workers would."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotator.managing import archive, project_settings, rubrics
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.models import Attribute, Project, Response, Role, Rubric, User
from annotator.stages import annotation, assignment
from annotator.stages.annotation import ResponseRating, Submission
from rewards import tasks
from rewards.evaluation import evaluation
from rewards.models import RewardModel, RunState, Snapshot, TrainingRun
from rewards.runs import runs
from tests.builders import NOW, imported, make_member, make_rubrics, make_user
from tests.rewards.policies.snapshots import JUDGEMENT, make_policy
from tests.worlds import World

ANNOTATORS = ("alice", "bob", "erin")
CONFIG = {"epochs": 0, "threads": 1, "batch_tokens": 512, "max_length": 64, "seed": 5, "cross_fit_minutes": 0}
LEARNT = ("trained", "two_models", "policy")
"""The states in which a reward model has been trained."""
ENDED = (RunState.PROMOTED, RunState.REJECTED)
FEW, ENOUGH = 4, 24
"""Tasks of a world that nothing is learnt from, and of one that a model learns from."""
RESPONSES = {"one_response": 1, "ranked": 3, "nine_responses": 9}
COMPARED = ("own_ratings", "ranked", "tied", "nine_responses", "right_to_left")
"""Kinds of data whose annotators are asked which response is better, beside the scales."""
SEGMENTS = 200


@dataclass(frozen=True)
class Made:
    """A world's project and its people; alice, bob and erin annotate."""

    world: World
    project: Project
    manager: User
    reviewer: User
    annotators: Sequence[User]


def make(world: World) -> Made:
    """Makes the world. Training happens where `tests.worlds.conftest` has it happen."""
    make_rubrics()
    manager, reviewer, *annotators = (make_user(name) for name in ("carol", "rita", *ANNOTATORS))
    project = project_settings.create(_settings(world), by=manager, guidelines="# How to rate\n\nRead both.")
    make_member(project, reviewer, Role.REVIEWER)
    for annotator in annotators:
        make_member(project, annotator)
    made = Made(world, project, manager, reviewer, annotators)
    if world.data != "none":
        _fill(made)
    _go_on(made)
    project.refresh_from_db()
    return made


def empty_copy(made: Made, *, slug: str) -> Project:
    """Makes a project without tasks that asks what the world's asks now."""
    asked = {"slug": slug, "name": slug, "rubric": RubricText.of(made.project.rubric)}
    return project_settings.create(_settings(made.world) | asked, by=made.manager)


def _settings(world: World) -> dict[str, Any]:
    compared, everything = world.data in COMPARED, world.data == "own_ratings"
    asked = dict.fromkeys(("ask_safety", "ask_confidence", "ask_feedback", "ask_language", "allow_recut"), everything)
    numbers = {"base_annotators": 2, "max_annotators": 3, "keep": 2, "validation_share": 0.3}
    return {
        "slug": "talk",
        "name": "Talk",
        "rubric": _rubric(world.rubric),
        "ask_preference": compared,
        "allow_ties": world.data == "tied",
        "domains": ["STEM", "Poetry"] if everything else [],
        "training_config": CONFIG,
        **asked,
        **numbers,
    }


# Rubrics ---------------------------------------------------------------------------------------------------


def _rubric(name: str) -> RubricText:
    helpsteer2 = RubricText.of(Rubric.objects.get(key="helpsteer2", project=None))
    segmented = RubricText.of(Rubric.objects.get(key="helpsteer2d", project=None))
    whole, aspects = helpsteer2.attributes, segmented.attributes
    attributes = {
        "helpsteer2": whole,
        "second_version": whole,
        "helpsteer2_and_own": (*whole, _attribute("safety", 5)),
        "helpsteer2_less_one": whole[:-1],
        "one_shared_key": (_attribute("tone", 5), whole[0], _attribute("accuracy", 5)),
        "own_levels": tuple(_attribute(f"with_{levels}", levels) for levels in (2, 3, 5, 7)),
        "yes_no": (_attribute("answers", 2), _attribute("polite", 2)),
        "segments_only": aspects[:2],
        "both_scopes": (
            _attribute("overall", 4),
            whole[1],
            *(replace(one, key=f"of_{one.key}") for one in aspects[:2]),
        ),
    }[name]
    return RubricText(name.replace("_", "-"), name.replace("_", " ").capitalize(), attributes)


def _attribute(key: str, levels: int) -> AttributeText:
    """The names of some levels are words that the product translates where they are its own."""
    texts = tuple(f"Right, {level}" for level in range(levels))
    return AttributeText(key, key.replace("_", " ").capitalize(), texts, description="How is it?")


def next_version(project: Project) -> RubricText:
    """The rubric without its last attribute, and with one that nobody has rated by."""
    text = RubricText.of(project.rubric)
    return replace(text, attributes=(*text.attributes[:-1], _attribute("style", 5)))


# Data ------------------------------------------------------------------------------------------------------


def _fill(made: Made) -> None:
    project, world = made.project, made.world
    dice, count = random.Random(7), _count(world)
    rows = [row for number in range(count) for row in _rows(project, world, number, dice)]
    result = imported(project, *rows)
    assert (result.rejected, result.created) == ([], count), result
    if world.state != "new" and world.data not in ("imported_labels", "imported_raters"):
        _rate(made, dice)


def _count(world: World) -> int:
    if world.state not in LEARNT:
        return FEW
    return ENOUGH // 2 if world.data in ("long_texts", "many_segments", "nine_responses") else ENOUGH


def _rows(project: Project, world: World, number: int, dice: random.Random) -> Iterator[Mapping[str, Any]]:
    """Yields the lines of one task: a line for each response where the layout has it so."""
    prompt = f"Question {number}: what is it?"
    qualities = [dice.randint(0, 4) for _ in range(RESPONSES.get(world.data, 2))]
    texts = [_text(world.data, quality, number=number, place=place) for place, quality in enumerate(qualities)]
    if world.data in ("imported_labels", "imported_raters"):
        for quality, text in zip(qualities, texts, strict=True):
            yield {"prompt": prompt, "response": text, **_given(project, world.data, text, quality, dice)}
        return
    responses = [
        {"id": f"{number}-{place}", "text": text, "model": f"model-{place}"} for place, text in enumerate(texts)
    ]
    turns = [{"role": "user", "content": prompt if world.data != "right_to_left" else f"ما هذا {number}؟"}]
    yield {"id": f"task-{number}", "messages": turns, "responses": responses, "lang": "en", "metadata": {"source": "w"}}


def _text(data: str, quality: int, *, number: int, place: int) -> str:
    """Better responses are longer, which a model can learn; no two are the same."""
    name = f"Answer {number}.{place}"
    if data == "right_to_left":
        return f"{name} {'كلمة جيدة ' * (3 + 6 * quality)}."
    if data == "long_texts":
        return f"{name} {'A long line of words follows here. ' * 560}"[: 20_000 - quality]
    if data == "many_segments":
        return " ".join(f"{name} has sentence {segment}." for segment in range(SEGMENTS))
    return f"{name} goes {'on and ' * (2 + 8 * quality)}ends. It is so."


def _given(project: Project, data: str, text: str, quality: int, dice: random.Random) -> dict[str, Any]:
    """The columns of scores: one label of each attribute, or the ratings of three people."""
    raters = 1 if data == "imported_labels" else 3
    lists = {
        attribute.key: [_level(attribute, quality, dice) for _ in range(raters)]
        for attribute in project.attributes_for()
    }
    given: dict[str, Any] = {key: levels if raters > 1 else levels[0] for key, levels in lists.items()}
    if project.aspects() and (raters == 1 or not lists):
        given["segments"] = [text[: len(text) // 2], text[len(text) // 2 :]]
        given |= {aspect.key: [_level(aspect, quality, dice), None] for aspect in project.aspects()}
    return given


def _level(attribute: Attribute, quality: int, dice: random.Random) -> int:
    """The response's quality, from 0 to 4, on the attribute's scale, and now and then a level beside it."""
    highest = len(attribute.levels) - 1
    return min(max(round(quality * highest / 4) + dice.choice((-1, 0, 0, 0, 1)), 0), highest)


# People ----------------------------------------------------------------------------------------------------


def _rate(made: Made, dice: random.Random) -> None:
    """Has everybody rate what they get; where work is not finished, the half of the tasks, a third, and a quarter."""
    project, world = made.project, made.world
    unfinished = world.data == "partly_rated" or world.state == "running"
    for place, annotator in enumerate(made.annotators):
        if place == 1 and world.rubric == "second_version":
            rubrics.publish(project, next_version(project))
        for _ in range(_count(world) // (2 + place) if unfinished else 10 * _count(world)):
            if not _rated_one(project, annotator, dice, tie=world.data == "tied"):
                break


def _rated_one(project: Project, annotator: User, dice: random.Random, *, tie: bool) -> bool:
    held = assignment.claim(project, annotator, now=NOW).assignment
    if held is None:
        return False
    responses = list(held.task.responses.order_by("position"))
    annotation.submit(held.pk, submission_for(project, responses, dice, tie=tie), now=NOW)
    return True


def submission_for(
    project: Project, responses: Sequence[Response], dice: random.Random, *, tie: bool = False
) -> Submission:
    """A rating that answers all that the project asks; the longer response is the better one."""
    cuts = annotation.cuts_of(project, responses[0].task, responses)
    longest = max(len(response.text) for response in responses)
    qualities = {response.pk: 4 * len(response.text) // longest for response in responses}
    ratings = {
        response.pk: ResponseRating(
            {one.key: _level(one, qualities[response.pk], dice) for one in project.attributes_for()},
            confidence=1 if project.ask_confidence else None,
            safe=True if project.ask_safety else None,
            feedback="It is good." if project.ask_feedback else "",
            segments=tuple(
                {one.key: _level(one, qualities[response.pk], dice) for one in project.aspects()}
                for _ in cuts.get(response.pk, ())
            ),
        )
        for response in responses
    }
    ranked = project.asks_for_ranking(len(responses))
    order = sorted(qualities, key=lambda pk: -qualities[pk])
    return Submission(
        ratings,
        preference=(0 if tie else dice.choice((-2, -1, 1, 3)))
        if project.ask_preference and len(responses) == 2
        else None,
        ranking=(tuple(order[:2]), *((pk,) for pk in order[2:])) if ranked else None,
        justification="The longer one says more.",
        domain=project.domains[0] if project.domains else "",
        language="en" if project.ask_language else "",
        active_seconds=12.5,
    )


# What comes after the ratings ------------------------------------------------------------------------------


def _go_on(made: Made) -> None:
    project, state = made.project, made.world.state
    if state == "running":
        for run_state in (RunState.FAILED, RunState.QUEUED):
            TrainingRun.objects.create(project=project, state=run_state, reason="a world", requested_by=made.manager)
    if state == "archived":
        archive.archive(project, now=NOW)
    if state in LEARNT and made.world.data != "none":
        _learn(made, models=2 if state == "two_models" else 1)
    if state == "policy":
        make_policy(project, judgement={**JUDGEMENT, "champion": 1})


_REMEMBERED: dict[tuple[str, int], list[dict[str, Any]]] = {}
"""What the runs of a rubric have left, by the number of models, for other worlds of this process."""


def _learn(made: Made, *, models: int) -> None:
    """Has so many reward models trained, each on more labels; where that was done for the rubric, writes its rows."""
    project, key = made.project, (made.world.rubric, models)
    if key in _REMEMBERED:
        for number, left in enumerate(_REMEMBERED[key], start=1):
            _write_model(project, number, left)
        return
    train(project)
    if models > 1:
        imported(project, *(row for number in (900, 901) for row in _more_labels(project, number)))
        train(project)
    _REMEMBERED[key] = [_left_by(run) for run in project.training_runs.filter(state__in=ENDED).order_by("pk")]


def _left_by(run: TrainingRun) -> dict[str, Any]:
    assert run.snapshot
    model = RewardModel.objects.get(run=run)
    return {
        "run": {
            name: getattr(run, name) for name in ("state", "metrics", "verdict", "losses", "progress", "config", "log")
        },
        "snapshot": run.snapshot.manifest,
        "model": {
            name: getattr(model, name) for name in ("attributes", "attribute_weights", "manifest", "is_champion")
        },
    }


def _write_model(project: Project, number: int, left: Mapping[str, Any]) -> None:
    manifest = left["snapshot"]
    counts = manifest["counts"]
    snapshot = Snapshot.objects.create(
        project=project,
        content_hash=f"{number}{manifest['content_hash'][1:]}",
        path="snapshots/none",
        manifest=manifest,
        train_tasks=counts["train_tasks"],
        validation_tasks=counts["validation_tasks"],
        labels=counts["train_labels"] + counts["validation_labels"],
    )
    run = TrainingRun.objects.create(
        project=project, reason="a world", snapshot=snapshot, finished_at=NOW, **left["run"]
    )
    parent = RewardModel.objects.filter(project=project).order_by("-version").first()
    model = RewardModel.objects.create(
        project=project, run=run, parent=parent, version=number, path="runs/none/model", **left["model"]
    )
    metrics = left["run"]["metrics"]["candidate"]
    evaluation.store(model, name=evaluation.VALIDATION, data_hash="0" * 64, metrics=metrics)


def _more_labels(project: Project, number: int) -> Iterator[Mapping[str, Any]]:
    dice, world = random.Random(number), World("", "imported_labels", "")
    yield from _rows(project, world, number, dice)


def train(project: Project) -> None:
    """Has the project's reward model trained and judged."""
    run = runs.request(project, reason="a world")
    tasks.train(run.pk)
    run.refresh_from_db()
    assert run.state in ENDED, run.error
