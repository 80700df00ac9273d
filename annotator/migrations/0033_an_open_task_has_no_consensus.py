"""Deletes the consensus that a single annotator's preference gave to a task that is still open.

Imported preferences, which hold no slot, settle a task that is open: theirs stays.
"""

from django.db import migrations

_EARLY = """
DELETE FROM annotator_consensus c USING annotator_task t
WHERE t.id = c.task_id AND t.state = 'open' AND NOT EXISTS (
    SELECT FROM annotator_assignment s
    WHERE s.task_id = t.id AND s.state = 'submitted' AND s.counts AND s.slot IS NULL
)
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0032_labels_in_plain_words")]

    operations = [migrations.RunSQL(_EARLY, migrations.RunSQL.noop)]
