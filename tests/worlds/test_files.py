"""Every layout of a world leaves, a release is made of it, and its agreement is what scikit-learn says."""

import io
import json
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations

import pyarrow.parquet
import pytest
from django.test import Client
from sklearn.metrics import cohen_kappa_score

from annotator.analysis.agreement.reports import report
from annotator.models import Attribute, Project, Rating, Release
from annotator.outputs.exporting import file_formats
from annotator.outputs.exporting.export_rows import export
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.outputs.releases import release_jobs
from annotator.outputs.releases.particulars import Particulars
from annotator.stages.importing import import_rows
from tests.annotator.outputs.releases.conftest import parquet_from_here
from tests.builders import NOW
from tests.worlds import WORLDS, World
from tests.worlds.building import LEARNT, Made, empty_copy, make

IMPORTABLE = (
    *("helpsteer2", "disagreements", "preference", "helpsteer3", "dpo", "nemo", "label_studio", "argilla"),
    *("helpsteer2d", "stepwise"),
)
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.mark.parametrize("world", [world for world in WORLDS if world.state not in LEARNT], ids=str)
def test_the_files_and_the_agreement_of_a_world_stand(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_formats, "_parquet", parquet_from_here)
    made = make(world)
    back = _round_trip_faults(made) if world.state == "complete" else ()
    assert [*_export_faults(made), *_release_faults(made), *_agreement_faults(made.project), *back] == []


def _export_faults(made: Made) -> Iterator[str]:
    client = Client()
    client.force_login(made.manager)
    for layout, written in LAYOUTS.items():
        answer = client.get(f"/api/v1/projects/{made.project.slug}/export/?layout={layout}")
        if answer.status_code == 200:
            rows = [json.loads(line) for line in b"".join(answer).decode().splitlines()]
            yield from (f"{layout}: {fault}" for fault in _row_faults(made.project, layout, rows))
        elif not (written.of_segments and not made.project.aspects() and answer.status_code == 400):
            yield f"{layout}: {answer.status_code} {answer.content[:200]!r}"


def _row_faults(project: Project, layout: str, rows: Sequence[dict[str, object]]) -> Iterator[str]:
    columns = LAYOUTS[layout].columns(project, Filters(for_manager=True))
    for row in rows:
        if unknown := row.keys() - columns.keys():
            yield f"no column {', '.join(sorted(unknown))}"
            return


def _round_trip_faults(made: Made) -> Iterator[str]:
    """Imports each layout that can be imported into a new project of the same rubric, where it has to leave equal."""
    for number, layout in enumerate(_importable(made)):
        file = b"".join(export(made.project, layout=layout, format="jsonl"))
        copy = empty_copy(made, slug=f"copy-{number}")
        back = import_rows(copy, io.BytesIO(file), now=NOW)
        yield from (f"{layout} comes back: {row}" for row in back.rejected[:1])
        went, came = (_told(layout, one) for one in (file, b"".join(export(copy, layout=layout, format="jsonl"))))
        if went != came:
            yield f"{layout}: {sorted(set(went) ^ set(came))[:2]}"


def _importable(made: Made) -> list[str]:
    layouts = [name for name in IMPORTABLE if made.project.aspects() or not LAYOUTS[name].of_segments]
    if made.world.rubric == "second_version":
        # Scores without those that only the newer version asks for are refused.
        layouts = [name for name in layouts if not LAYOUTS[name].of_scores and name != "argilla"]
    # Without scores of responses these rows are nothing but texts.
    empty = () if made.project.attributes_for() else ("helpsteer2", "disagreements")
    return [name for name in layouts if name not in empty]


def _told(layout: str, file: bytes) -> list[str]:
    rows = (json.loads(line) for line in file.decode().splitlines())
    # A rater has another pseudonym in each project, and what told two responses apart is a preference on the way back.
    chosen = ({key: row[key] for key in (("prompt", "chosen", "rejected") if layout == "dpo" else row)} for row in rows)
    return sorted(re.sub(r"\br-[0-9a-f]{10}\b", "r", json.dumps(row, sort_keys=True)) for row in chosen)


def _release_faults(made: Made) -> Iterator[str]:
    release = release_jobs.request(made.project, Particulars(), by=made.manager, now=NOW)
    release_jobs.run_waiting()
    release.refresh_from_db()
    is_empty = not made.project.tasks.filter(done__gt=0).exists() and made.world.data != "imported_labels"
    if release.state != Release.State.DONE and not (is_empty and "There are no labels" in release.error):
        yield f"release: {release.state} {release.error}"
    elif release.state == Release.State.DONE:
        loaded = sum(pyarrow.parquet.read_table(file).num_rows for file in release.folder().rglob("*.parquet"))
        if loaded != sum(sum(splits.values()) for splits in release.counts["rows"].values()):
            yield f"release: {loaded} rows load, and it has {release.counts['rows']}"


def _agreement_faults(project: Project) -> Iterator[str]:
    measured = report(project, now=NOW).all
    for attribute in project.every_attribute():
        samples = list(_samples(project, attribute).values())
        wanted = _kappa([sample for sample in samples if len(sample) > 1], len(attribute.levels))
        got = measured[attribute.key].kappa
        if (wanted is None) != (got is None) or (wanted is not None and got != pytest.approx(wanted, abs=1e-9)):
            yield f"kappa of {attribute.key} is {got}, and scikit-learn says {wanted}"


def _samples(project: Project, attribute: Attribute) -> dict[tuple[int, int], list[int]]:
    """The ratings of each response, or of each segment of one."""
    rows = Rating.objects.filter(
        annotation__is_current=True, annotation__assignment__counts=True, annotation__assignment__task__project=project
    )
    samples: dict[tuple[int, int], list[int]] = defaultdict(list)
    for rating in rows.select_related("annotation"):
        if attribute.scope == Attribute.Scope.RESPONSE and attribute.key in rating.scores:
            samples[rating.response_id, -1].append(rating.scores[attribute.key])
        elif attribute.key in rating.annotation.aspects:
            place = rating.annotation.aspects.index(attribute.key)
            for segment, scores in enumerate(rating.segment_scores or ()):
                if scores[place] is not None:
                    samples[rating.response_id, segment].append(scores[place])
    return samples


def _kappa(samples: Sequence[Sequence[int]], levels: int) -> float | None:
    """Kappa with quadratic weights over every two raters of a sample, in both orders; each sample weighs the same."""
    pairs = [
        (one, other, 1 / (len(sample) - 1) / len(sample))
        for sample in samples
        for one, other in permutations(sample, 2)
    ]
    if len({one for one, _, _ in pairs}) < 2:
        return None
    first, second, weight = zip(*pairs, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(cohen_kappa_score(first, second, weights="quadratic", labels=range(levels), sample_weight=weight))
