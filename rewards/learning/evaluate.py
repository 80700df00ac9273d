"""Stage: evaluates a stored model on labelled rows or on a published benchmark, as the rows' columns say.

A labelled task whose prompt the model was trained on is left out: it would judge the model by what it has learnt.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewards.learning import distributed
from rewards.learning.alike import alike_of, with_alike
from rewards.learning.answers import segment_labels
from rewards.learning.atomic_directories import write_json
from rewards.learning.benchmarks import SNAPSHOT, cases_of, recognise
from rewards.learning.benchmarks.benchmark_rows import HUB, data_hash, rows_of
from rewards.learning.benchmarks.cases import Benchmark, JudgedCase, judged
from rewards.learning.config import EvaluateConfig, read_config
from rewards.learning.data import (
    MOST_LEVELS,
    EmptyPart,
    Floats,
    Item,
    Task,
    Turn,
    aspects_in,
    by_segments,
    is_judged,
    prompts_of,
    read_manifest,
    read_tasks,
    scales_of,
    targets_of,
    tasks_of,
)
from rewards.learning.encoding import Encoded, truncation_of
from rewards.learning.inference import predict, predict_all, start
from rewards.learning.intervals import by_prompt
from rewards.learning.metrics import (
    CONSTANT,
    Measures,
    attribute_measures,
    human_ceiling,
    over_all,
    root_mean_square,
    spearman,
)
from rewards.learning.model_files import Checkpoint, Manifest, load_checkpoint
from rewards.learning.model_loading import positions
from rewards.learning.pairs import Pair, accuracy, differences_of, pairs_of, pairwise
from rewards.learning.precision import name_of, with_precision
from rewards.learning.progress import Count, Progress
from rewards.learning.score import scored, write_rows
from rewards.learning.segment_measures import measure_segments, segment_fields
from rewards.learning.splits import encoded_tasks


def evaluate(directory: Path) -> None:
    """Reads config.json of `directory`, writes predictions.jsonl and then metrics.json, and meanwhile progress.jsonl.

    Several processes share the passes, and each holds a part of the model.

    Raises:
        BadConfig, MissingFile, BadManifest, BadRow, UnknownFormat, NoHub: the configuration or the rows cannot be used.
        EmptyPart: no row judges the model.
        NoCheckpoint, CorruptCheckpoint, IncompleteWeights, NoSuchDevice: the model cannot be loaded.
    """
    config = read_config(EvaluateConfig, directory / "config.json")
    name = config.data.removeprefix(HUB) if config.data.startswith(HUB) else Path(config.data).name
    rows = rows_of(config.data)
    benchmark = recognise(name, rows)
    checkpoint = load_checkpoint(Path(config.model), device=start(config.device, config.threads))
    checkpoint = dataclasses.replace(checkpoint, loaded=with_precision(checkpoint.loaded, config.precision))
    progress = Progress(directory / "progress.jsonl", silent=not distributed.is_first())
    if benchmark:
        cases, learnt = cases_of(Path(config.data).name, rows, benchmark), _trained_on(config)
        encoded = _encoded(checkpoint, [item for case in cases for item in case.items], progress)
        predicted = predict(checkpoint.loaded, encoded, batch_tokens=config.batch_tokens, progress=progress)
        rewards = judged(cases, (predicted @ _weights(checkpoint.manifest)).tolist())
        _write_predictions(directory, _judged_rows(rewards, benchmark))
        metrics = {
            **benchmark.measure(rewards),
            # Without some of its rows it would be another benchmark, so they are only counted.
            "seen_in_training": sum(_prompt(case.conversation) in learnt for case in cases),
            "truncation": dataclasses.asdict(truncation_of(encoded)),
        }
    else:
        scales = scales_of(checkpoint.manifest.attributes, checkpoint.manifest.levels)
        tasks = tasks_of(name, enumerate(rows, start=1), scales, aspects_of(config.data, checkpoint.manifest))
        metrics = _on_labels(directory, config, checkpoint, list(tasks), progress)
    data = {"name": name, "format": benchmark.name if benchmark else SNAPSHOT, "rows": len(rows)}
    precision = name_of(checkpoint.loaded.half)
    if distributed.is_first():
        data["sha256"] = data_hash(config.data, rows)
        write_json(directory / "metrics.json", {**metrics, "precision": precision, "data": data})
    distributed.leave()


def _on_labels(
    directory: Path, config: EvaluateConfig, checkpoint: Checkpoint, every: list[Task], progress: Progress
) -> Measures:
    learnt = _trained_on(config)
    tasks = [task for task in every if _prompt(task.conversation) not in learnt]
    if checkpoint.manifest.by_segments:
        tasks = [*by_segments(tasks)]
    scored = np.isfinite(segment_labels(tasks, checkpoint.manifest.aspects)).any()
    if not scored and not is_judged(tasks, checkpoint.manifest.attributes):
        left_out = f"; {len(every) - len(tasks)} tasks are left out, as the model was trained on their prompts"
        raise EmptyPart(
            f"{config.data} has no response with a label that the model predicts" + (left_out if learnt else "")
        )
    count = Count("encode", sum(len(task.responses) for task in tasks), progress)
    encoded = [*encoded_tasks(tasks, checkpoint.loaded, count)]
    tasks = with_alike(tasks, encoded)
    most = positions(checkpoint.loaded.network.network.config)
    alike = alike_of(tasks, checkpoint.loaded.frame, checkpoint.manifest.attribute_weights, most=most)
    predicted = predict_all(checkpoint.loaded, encoded, batch_tokens=config.batch_tokens, progress=progress)
    rows = prediction_rows(tasks, predicted.responses, checkpoint.manifest, segments=predicted.segments)
    _write_predictions(directory, rows)
    return {
        **measure(tasks, predicted.responses, checkpoint.manifest),
        **measure_segments(tasks, predicted.segments, checkpoint.manifest),
        "seen_in_training": len(every) - len(tasks),
        "truncation": dataclasses.asdict(truncation_of(encoded)),
        "alike": dataclasses.asdict(alike),
    }


def _write_predictions(directory: Path, rows: Iterator[dict[str, Any]]) -> None:
    if distributed.is_first():
        write_rows(directory / "predictions.jsonl", rows)


def _judged_rows(rows: Sequence[JudgedCase], benchmark: Benchmark) -> Iterator[dict[str, Any]]:
    for row in rows:
        rewards = {"good": row.good.tolist(), "bad": row.bad.tolist()}
        yield {"id": row.case.id, "group": row.case.group, **rewards, "result": benchmark.result(row)}


def _encoded(checkpoint: Checkpoint, items: Sequence[Item], progress: Progress) -> list[Encoded]:
    count, encoded = Count("encode", len(items), progress), []
    for item in items:
        encoded.append(checkpoint.loaded.frame.encode(item))
        count.add()
    return encoded


def aspects_of(data: str, manifest: Manifest) -> dict[str, int]:
    """Returns the number of levels of each aspect in the order in which the rows have their scores.

    A snapshot's manifest beside the rows gives the order, else the model. Nothing where the model scores no segments.
    """
    if not manifest.aspects:
        return {}
    beside, scales = Path(data).with_name("manifest.json"), scales_of(manifest.aspects, manifest.levels)
    names = aspects_in(read_manifest(beside)) if beside.is_file() else ()
    return {name: scales.get(name, MOST_LEVELS) for name in names or manifest.aspects}


def _trained_on(config: EvaluateConfig) -> set[str]:
    """Returns the prompts that the model was trained on; an empty set where its training rows are unknown."""
    return {_prompt(task.conversation) for task in read_tasks(Path(config.train))} if config.train else set()


def _prompt(conversation: Sequence[Turn]) -> str:
    """Returns the conversation's text without differences in white space and letter case, as copies often differ so."""
    return "\0".join(f"{turn.role} {' '.join(turn.content.split()).casefold()}" for turn in conversation)


def _weights(manifest: Manifest) -> Floats:
    return np.array([manifest.attribute_weights[name] for name in manifest.attributes])


def measure(tasks: Sequence[Task], predicted: Floats, manifest: Manifest) -> Measures:
    """Returns all measures of one model's predictions [responses, attributes] on these tasks."""
    labels, prompts = targets_of(tasks, manifest.attributes), prompts_of(tasks)
    weights, scales = _weights(manifest), scales_of(manifest.attributes, manifest.levels)
    rewards = predicted @ weights
    errors = predicted - labels
    lost = int((~np.isfinite(predicted)).any(axis=1).sum())
    return {
        "attributes": {
            name: attribute_measures(
                predicted[:, i], labels[:, i], mean=manifest.means[i], prompts=prompts, levels=scales[name]
            )
            for i, name in enumerate(manifest.attributes)
        },
        **over_all(errors, labels, prompts),
        "pairwise": pairwise(tasks, rewards.tolist(), manifest.attribute_weights),
        "human": {
            name: human_ceiling(tasks, predicted, name, i, levels=scales[name])
            for i, name in enumerate(manifest.attributes)
        },
        "length": length_correlation(tasks, rewards, labels, weights),
        "slices": {} if lost else slices(tasks, errors, rewards, pairs_of(tasks, manifest.attribute_weights)),
        "constant": [name for i, name in enumerate(manifest.attributes) if predicted[:, i].std() < CONSTANT],
        "not_finite": lost,
    }


def prediction_rows(
    tasks: Sequence[Task], predicted: Floats, manifest: Manifest, *, segments: Floats | None = None
) -> Iterator[dict[str, Any]]:
    """Yields a row per response; `squared_error` is summed over its `labels` known labels.

    Promotion sums both by prompt and resamples the prompts. `same_as` has the ids of other responses that the model
    reads as the same tokens. With predictions of segments [segments, aspects] a
    segmented response has those too, as `segment_fields` writes them.
    """
    errors = (predicted - targets_of(tasks, manifest.attributes)) ** 2
    responses = [(task, response) for task in tasks for response in task.responses]
    of_segments = segment_fields(tasks, segments, manifest)
    for (task, response), row, error, more in zip(responses, predicted.tolist(), errors, of_segments, strict=True):
        ids = [one.id for one in task.responses]
        place = ids.index(response.id)
        same = [ids[sum(pair) - place] for pair in task.alike if place in pair]
        result = scored(dict(zip(manifest.attributes, row, strict=True)), manifest.attribute_weights)
        yield {
            "task": task.id,
            "prompt_hash": task.prompt_hash,
            "id": response.id,
            "scores": result.scores,
            "reward": result.reward,
            "squared_error": float(np.nansum(error)),
            "labels": int(np.isfinite(error).sum()),
            **({"same_as": same} if same else {}),
            **more,
        }


# Slices ------------------------------------------------------------------------------------------------------


MOST_VALUES = 20
"""Each kind of slice shows its largest parts, at most this many."""
LENGTHS = ("short", "medium", "long")


def slices(tasks: Sequence[Task], errors: Floats, rewards: Floats, pairs: Sequence[Pair]) -> Measures:
    """Returns by kind and part the RMSE over all labels and the accuracy over the pairs within the part.

    errors [responses, attributes]: prediction minus label, NaN where there is no label; rewards [responses].
    """
    prompts, by_slice = prompts_of(tasks), {}
    asked = [sum(turn.role == "user" for turn in task.conversation) for task in tasks for _ in task.responses]
    lengths = _lengths(tasks)
    edges = np.quantile(lengths, [1 / 3, 2 / 3])
    kinds = {
        "turns": ["multi" if turns > 1 else "single" for turns in asked],
        "length": [LENGTHS[place] for place in np.searchsorted(edges, lengths, side="left")],
        "model": [response.model for task in tasks for response in task.responses],
        "source": [task.source for task in tasks for _ in task.responses],
        "language": [task.language for task in tasks for _ in task.responses],
    }
    for kind, parts in kinds.items():
        largest = [part for part, _ in Counter(parts).most_common(MOST_VALUES)]
        rows = {part: np.array([item == part for item in parts]) for part in largest if part}
        if len(rows) > 1 or kind == "turns":
            by_slice[kind] = {part: _part(here, prompts, errors, rewards, pairs) for part, here in rows.items()}
    return by_slice


def length_correlation(tasks: Sequence[Task], rewards: Floats, labels: Floats, weights: Floats) -> Measures:
    """Returns Spearman's correlation of a response's length in characters with its reward and its labelled reward.

    rewards [responses]; labels [responses, attributes], NaN where one is missing; weights [attributes].
    """
    lengths = _lengths(tasks)
    labelled = labels @ weights
    known = np.isfinite(labelled)
    finite = bool(np.isfinite(rewards).all())
    return {
        "n": len(lengths),
        "reward": spearman(rewards, lengths) if finite else None,
        "label": spearman(labelled[known], lengths[known]),
        "labelled": int(known.sum()),
    }


def _lengths(tasks: Sequence[Task]) -> Floats:
    return np.array([len(response.text) for task in tasks for response in task.responses], dtype=np.float64)


def _part(here: Floats, prompts: Sequence[str], errors: Floats, rewards: Floats, pairs: Sequence[Pair]) -> Measures:
    rows, columns = np.nonzero(np.isfinite(errors) & here[:, None].astype(bool))
    known = errors[rows, columns]
    error: Measures = {"labels": len(known), "rmse": None, "intervals": {}}
    if len(known):
        statistic = root_mean_square(known)
        error["rmse"] = statistic(np.ones(len(known)))
        error["intervals"] = by_prompt([prompts[row] for row in rows.tolist()], lambda w: {"rmse": statistic(w)})
    inside = [pair for pair in pairs if here[pair.better] and here[pair.worse]]
    return {
        "n": int(here.sum()),
        **error,
        "pairwise": accuracy(inside, differences_of(inside, rewards.tolist())),
    }
