"""Mappings that a project keeps by name, so that the next file with the same columns needs no new one."""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stale_edits import Seen
from annotator.models import ImportMapping, Project, User
from annotator.stages.importing.mappings import BadMapping, ColumnMapping, mapping_of_text, read_mapping

MOST = 50
LONGEST_NAME = ImportMapping._meta.get_field("name").max_length or 0
_NAME = re.compile(r"[^\x00-\x1f\x7f{}/]+")


class NewerMapping(Refusal):
    """Somebody else has kept another mapping under the name since the caller read it; `current` is theirs."""

    code = "newer_mapping"

    def __init__(self, current: ImportMapping) -> None:
        text = _("Somebody else has kept another mapping as %(name)s meanwhile: %(mapping)s")
        columns = json.dumps(current.columns, ensure_ascii=False)
        super().__init__(text % {"name": current.name, "mapping": columns})
        self.errors = {"changed_at": [str(self)]}
        self.current = current


class UnknownMapping(BadMapping):
    """The project keeps no mapping of this name; the message lists those that it keeps."""

    code = "unknown_mapping"


@in_transaction
def keep(
    project: Project, name: str, mapping: ColumnMapping, *, by: User | None, seen: Seen | None = None
) -> ImportMapping:
    """Keeps the mapping under the name, in place of the mapping that had the name before.

    The name of whoever rated a file is not kept: the next file is another person's. `seen` holds the mappings as the
    caller has read them (`as_seen`), where the caller asks not to replace others.

    Raises:
        NewerMapping: Another mapping has this name than the caller has seen.
        BadMapping: The name is empty, too long, or has characters that a name may not have, or nothing is mapped.
        Refusal: The project keeps MOST of them.
    """
    name = " ".join(name.split())
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME or not name.isprintable():
        text = _("name: Write 1 to %(most)s characters, without braces and slashes.")
        raise BadMapping(text % {"most": LONGEST_NAME})
    mapping = replace(mapping, rated_by="")
    if not mapping.as_json():
        raise BadMapping(_("mapping: It names no column and no question, so there is nothing to keep."))
    # The project's row is locked, so that two at once do not both keep the last one that there is room for.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    others = ImportMapping.objects.filter(project=project).exclude(name=name)
    if others.count() >= MOST:
        text = _("The project keeps %(number)s mappings already. Delete one of them.")
        raise Refusal(text % {"number": MOST}, code="too_many_mappings")
    row = ImportMapping.objects.filter(project=project, name=name).first()
    if row and seen is not None and row.columns != mapping.as_json() and as_seen([row])[name] != seen.get(name):
        raise NewerMapping(row)
    fields = {"columns": mapping.as_json(), "by": by}
    row, _is_new = ImportMapping.objects.update_or_create(project=project, name=name, defaults=fields)
    audit.record("import_mapping.kept", f"mapping {name}", project=project, columns=mapping.as_json())
    return row


def as_seen(rows: Iterable[ImportMapping]) -> dict[str, str]:
    """Returns when each mapping was last kept, by its name, to be given to `keep` as `seen`."""
    return {row.name: moment(row.changed_at) for row in rows}


def moment(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


@in_transaction
def delete(row: ImportMapping) -> None:
    """Deletes a kept mapping. Imports that used it stay as they are."""
    audit.record("import_mapping.deleted", f"mapping {row.name}", project=row.project)
    row.delete()


def mapping_named(project: Project, name_or_json: str) -> ColumnMapping | None:
    """Returns the mapping of this name, the one that the text holds as JSON, or None for an empty text.

    Raises:
        BadMapping, UnknownMapping: There is no such mapping, or it is not valid.
    """
    text = name_or_json.strip()
    if not text:
        return None
    if text.startswith("{"):
        return mapping_of_text(text)
    row = ImportMapping.objects.filter(project=project, name=text).first() if len(text) <= LONGEST_NAME else None
    if row is None:
        names = ImportMapping.objects.filter(project=project).values_list("name", flat=True)[:20]
        kept = _("It keeps %(names)s.") % {"names": ", ".join(names)} if names else _("It keeps none.")
        unknown = _("mapping: The project keeps no mapping of this name.")
        raise UnknownMapping(f"{unknown} {kept}")
    return read_mapping(row.columns)
