"""Checks that this process sees the installation's artifacts, which are its snapshots, runs and models.

A file in the folder, or in the object store, holds an id that the database knows as well. A process on another machine
with another folder would train without the champion, and report texts as erased that still exist elsewhere.
"""

import logging
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import object_store, store
from annotator.models import Installation

_log = logging.getLogger(__name__)


class ForeignArtifacts(Refusal):
    """The artifacts folder of this process is not the installation's."""

    status = 503
    code = "foreign_artifacts"


def marker() -> Path:
    return Path(settings.ARTIFACTS) / ".installation"


def marked_as() -> UUID | None:
    """Returns the id in the marker, or None if there is no marker that can be read. Raises StoreAway."""
    with suppress(OSError, ValueError):
        text = (object_store.marked_as() or b"").decode() if store.is_remote() else marker().read_text()
        return UUID(text.strip())
    return None


def problem(known: UUID | None) -> str:
    """Returns what is wrong with the folder or the object store, given the id in the database.

    The text is empty if it has the same id, or if neither has one yet.
    """
    try:
        mark = marked_as()
    except object_store.StoreAway as away:
        return str(away)
    if mark == known:
        return ""
    if store.is_remote():
        return _(
            "ARTIFACTS_URL names an object store that is not this installation's. If it is right (restored or moved), "
            "`manage.py adopt_artifacts` marks it."
        )
    if mark:
        return _(
            "The artifacts of this process belong to another installation: VAR_DIR must be the folder that all "
            "processes share. If the folder is right (restored or moved), `manage.py adopt_artifacts` marks it."
        )
    text = _(
        "The artifacts of this process lack the file %(file)s that marks them: VAR_DIR must be the folder that all "
        "processes share. If the folder is right (restored or moved), `manage.py adopt_artifacts` marks it."
    )
    return text % {"file": marker().name}


def known_id() -> UUID | None:
    return Installation.objects.values_list("artifacts_id", flat=True).first()


def require_ours() -> None:
    """Raises ForeignArtifacts if the folder of this process is not the installation's."""
    if wrong := problem(known_id()):
        raise ForeignArtifacts(wrong)


def report_at_start() -> None:
    """Logs an error if a process that starts sees the wrong folder. The health checks report it from then on."""
    if wrong := problem(known_id()):
        _log.error("%s (%s)", wrong, settings.ARTIFACTS_STORE or settings.ARTIFACTS)


def mark_new() -> None:
    """Marks the folder of a new installation, or of one that is older than the markers.

    If either side has an id already, nothing changes: only the operator can `adopt` a folder then.
    """
    Path(settings.ARTIFACTS).mkdir(mode=0o700, parents=True, exist_ok=True)
    is_marked = bool(marked_as()) if store.is_remote() else marker().exists()
    if not Installation.objects.exists() and not is_marked:
        adopt()


@transaction.atomic
def adopt() -> None:
    """Makes this process's folder the installation's, so that others are refused. The operator decides this."""
    row, _is_new = Installation.objects.get_or_create(pk=1, defaults={"artifacts_id": uuid4()})
    marker().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Within the transaction: if the marker cannot be written, the database keeps no id that no folder has.
    if store.is_remote():
        object_store.mark(f"{row.artifacts_id}\n".encode())
    else:
        marker().write_text(f"{row.artifacts_id}\n")
    audit.record("artifacts.adopted", "artifacts", id=str(row.artifacts_id))
