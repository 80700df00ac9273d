"""What older versions kept by slug gets the project's number, and settings that no door would store now are mended."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import migrations

# The names that exports have had until now stay as they are, in each project that the person is in.
PSEUDONYMS = """
INSERT INTO annotator_pseudonym (user_id, project_id, name)
    SELECT u.id, known.project_id, u.pseudonym FROM annotator_user u JOIN (
        SELECT user_id, project_id FROM annotator_membership
        UNION SELECT annotator_id, project_id FROM annotator_tally
        UNION SELECT annotator_id, project_id FROM annotator_exclusion
    ) known ON known.user_id = u.id
ON CONFLICT DO NOTHING;
"""
# Accounts of imported raters are named imported.SLUG.PLACE; whose they are is told by where they have worked.
IMPORTED_RATERS = r"""
INSERT INTO annotator_importedrater (project_id, place, user_id)
    SELECT DISTINCT ON (y.project_id, place) y.project_id, substring(u.username FROM '[^.]+$') AS place, u.id
    FROM annotator_user u JOIN annotator_tally y ON y.annotator_id = u.id
        JOIN annotator_project p ON p.id = y.project_id
    WHERE u.username ~ '^imported\.[-a-zA-Z0-9_]+\.(rater|preference)-[0-9]+$' AND NOT u.is_active
        AND NOT EXISTS (SELECT FROM annotator_membership m WHERE m.user_id = u.id)
    ORDER BY y.project_id, place, (u.username LIKE 'imported.' || p.slug || '.%') DESC, u.id;
"""
# Managers whose admission made them staff; who is staff for another reason stays so.
STAFF = """
UPDATE annotator_user u SET staff_by_role = true WHERE u.is_staff AND NOT u.is_superuser
    AND EXISTS (SELECT FROM annotator_membership m WHERE m.user_id = u.id AND m.role = 'manager')
    AND EXISTS (SELECT FROM annotator_auditentry e WHERE e.action = 'account.changed'
        AND e.subject = 'account ' || u.username AND e.details = '{"changed": {"is_staff": [false, true]}}'::jsonb);
"""
SETTINGS = """
UPDATE annotator_project SET
    max_annotators = least(greatest(max_annotators, base_annotators), 25), base_annotators = least(base_annotators, 25),
    keep = least(keep, max_annotators, 25), escalate_above = least(escalate_above, 4),
    drop_above = least(drop_above, 4), lease_minutes = greatest(lease_minutes, 1),
    qualification_tries = greatest(qualification_tries, 1), gold_window = greatest(gold_window, 2),
    qualification_threshold = least(greatest(qualification_threshold, -1), 1),
    gold_threshold = least(greatest(gold_threshold, -1), 1),
    review_unlikely_percent = least(review_unlikely_percent, 20),
    validation_share = least(greatest(validation_share, 0.01), 0.5);

UPDATE annotator_project p SET spread_attribute = (
    SELECT a.key FROM annotator_attribute a WHERE a.rubric_id = p.rubric_id AND a.scope = 'response'
    ORDER BY a.position LIMIT 1
) WHERE EXISTS (SELECT FROM annotator_attribute a WHERE a.rubric_id = p.rubric_id AND a.scope = 'response')
    AND NOT EXISTS (SELECT FROM annotator_attribute a
        WHERE a.rubric_id = p.rubric_id AND a.scope = 'response' AND a.key = p.spread_attribute);

UPDATE annotator_membership SET languages = ARRAY(SELECT DISTINCT lower(trim(code)) FROM unnest(languages) AS code)
    WHERE EXISTS (SELECT FROM unnest(languages) AS code WHERE code <> lower(trim(code)));
"""


def mend_languages(apps: Any, schema_editor: Any) -> None:
    """A language that was written out, like English, becomes the code that tasks have."""
    from annotator.projects.languages import code_of  # noqa: PLC0415

    for member in apps.get_model("annotator", "Membership").objects.exclude(languages=[]).iterator():
        codes = list(dict.fromkeys(code_of(each) or each for each in member.languages))
        if codes != member.languages:
            member.languages = codes
            member.save(update_fields=["languages"])


def number_audit(apps: Any, schema_editor: Any) -> None:
    """Each project's entries, followed back through its earlier slugs; what went before its making is somebody else's."""
    entries = apps.get_model("annotator", "AuditEntry").objects
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("ALTER TABLE annotator_auditentry DISABLE TRIGGER audit_is_append_only")
        for pk, slug, made_at in apps.get_model("annotator", "Project").objects.values_list("pk", "slug", "created_at"):
            for name, since, until in spans(entries, slug, made_at):
                told = entries.filter(project=name, at__gte=since, project_id=None)
                (told.filter(at__lt=until) if until else told).update(project_id=pk)
        cursor.execute("ALTER TABLE annotator_auditentry ENABLE TRIGGER audit_is_append_only")


def spans(entries: Any, slug: str, made_at: datetime) -> Iterator[tuple[str, datetime, datetime | None]]:
    """Which slug a project had since when and until when, the latest first."""
    until = None
    while True:
        named = entries.filter(project=slug, action="project.changed", at__gte=made_at, details__changed__slug__1=slug)
        renamed = (named.filter(at__lt=until) if until else named).order_by("-at", "-pk").first()
        if renamed is None:
            yield slug, made_at, until
            return
        yield slug, renamed.at, until
        slug, until = renamed.details["changed"]["slug"][0], renamed.at


class Migration(migrations.Migration):
    dependencies = [("annotator", "0018_a_pseudonym_for_everybody")]
    operations = [
        migrations.RunSQL(PSEUDONYMS, migrations.RunSQL.noop),
        migrations.RunSQL(IMPORTED_RATERS, migrations.RunSQL.noop),
        migrations.RunSQL(STAFF, migrations.RunSQL.noop),
        migrations.RunSQL(SETTINGS, migrations.RunSQL.noop),
        migrations.RunPython(mend_languages, migrations.RunPython.noop),
        migrations.RunPython(number_audit, migrations.RunPython.noop),
    ]
