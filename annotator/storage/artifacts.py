"""Whether this process sees the artifacts of this installation: snapshots, runs and models lie there.

The folder bears an id in a file, and the database knows it. A process on another machine whose folder is another one
would train without the champion, and tell people that texts are erased which lie elsewhere.
"""

import logging
from pathlib import Path
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from annotator import audit
from annotator.models import Installation
from annotator.refusals import Refusal

_log = logging.getLogger(__name__)


class ForeignArtifacts(Refusal):
    """The folder that this process has for artifacts is not the installation's."""

    status = 503
    code = "foreign_artifacts"


def marker() -> Path:
    return Path(settings.ARTIFACTS) / ".installation"


def marked_as() -> UUID | None:
    """The id that the folder bears; None where it bears none that can be read."""
    try:
        return UUID(marker().read_text().strip())
    except (OSError, ValueError):
        return None


def problem(known: UUID | None) -> str:
    """What is wrong with the folder, where the database knows this id; empty if nothing is, or neither has one yet."""
    found = marked_as()
    if found == known:
        return ""
    what = "belong to another installation" if found else f"lack the file {marker().name} that marks them"
    return (
        f"The artifacts of this process {what}: VAR_DIR must be the folder that all processes share. If the folder is "
        "right (restored or moved), `manage.py adopt_artifacts` marks it."
    )


def known_id() -> UUID | None:
    return Installation.objects.values_list("artifacts_id", flat=True).first()


def require_ours() -> None:
    """Raises ForeignArtifacts where this process sees other files than the installation's."""
    if wrong := problem(known_id()):
        raise ForeignArtifacts(wrong)


def report_at_start() -> None:
    """Each process says at its start whether it sees the right files; health goes on saying so."""
    if wrong := problem(known_id()):
        _log.error("%s (%s)", wrong, settings.ARTIFACTS)


def mark_new() -> None:
    """Gives a new installation, or one from before there were marks, its id; afterwards nothing but `adopt` does."""
    Path(settings.ARTIFACTS).mkdir(mode=0o700, parents=True, exist_ok=True)
    if not Installation.objects.exists() and not marker().exists():
        adopt()


@transaction.atomic
def adopt() -> None:
    """Makes this process's folder the installation's. The operator's decision: other processes' folders are not."""
    row, _ = Installation.objects.get_or_create(pk=1, defaults={"artifacts_id": uuid4()})
    marker().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    marker().write_text(f"{row.artifacts_id}\n")
    audit.record("artifacts.adopted", "artifacts", id=str(row.artifacts_id))
