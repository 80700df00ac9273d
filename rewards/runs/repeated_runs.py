"""Refuses runs that would only repeat another one: the same code, settings, seed and labels make the same model."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

import rewards
from annotator.infrastructure.refusals import Refusal
from annotator.models import Project
from rewards.models import RewardModel, Snapshot, TrainingRun
from rewards.runs import run_settings
from rewards.runs.run_settings import check_config

LEARNING = Path(rewards.__file__).with_name("learning")


class NothingNew(Refusal):
    """A model has learnt from the same labels with the same settings."""

    code = "nothing_new"


def refuse_same_settings(project: Project, version: int, config: Mapping[str, Any]) -> None:
    """Refuses settings with which the version was trained, where nothing has been labelled since.

    Raises:
        NothingNew: the settings are those of the version's run.
        UnusableConfig: they are no settings.
    """
    former = project.reward_models.select_related("run").get(version=version).run.config
    if check_config(run_settings.settled(project, dict(config))) == check_config(former):
        raise NothingNew(_("Nothing new has been labelled. Tick the box below if you want the run all the same."))


def refuse_repetition(run: TrainingRun, snapshot: Snapshot) -> None:
    """Refuses a run that would only repeat another one.

    The worker calls it, which has the snapshot: the web process would have to read every label for it.

    Raises:
        NothingNew: the same code has made a model, promoted or not, of the same labels with the same settings.
    """
    alike = RewardModel.objects.filter(
        project=run.project,
        run__config_hash=run.config_hash,
        run__seed=run.seed,
        run__code_version=code_version(),
        run__snapshot=snapshot,
        run__snapshot__marked_at=None,
    )
    version = alike.order_by("-version").values_list("version", flat=True).first()
    if version is not None:
        raise NothingNew(
            f"Nothing has changed since version {version}, which learnt from the same labels with the same settings. "
            "Change the settings (another seed is enough) or label more."
        )


@cache
def code_version(*packages: str) -> str:
    """Returns the release and a hash of the learning core's own code: the same string means the same training.

    packages: the parts of the core that the run uses besides its modules.
    """
    code = hashlib.sha256()
    for module in sorted(path for folder in ("", *packages) for path in (LEARNING / folder).glob("*.py")):
        code.update(module.name.encode() + b"\0" + module.read_bytes())
    return f"{settings.SPECTACULAR_SETTINGS['VERSION']}+{code.hexdigest()[:12]}"
