"""What counted beside the slots until now gets a slot of its own: no label changes with the upgrade."""

from django.db import migrations

# Preferences alone were told by their having no ratings.
MARK_PREFERENCES = """
UPDATE annotator_assignment s SET response_order = '{}'
WHERE s.state = 'submitted' AND s.counts AND s.slot IS NULL AND s.response_order <> '{}' AND NOT EXISTS (
    SELECT FROM annotator_annotation a JOIN annotator_rating r ON r.annotation_id = a.id WHERE a.assignment_id = s.id
);
"""
FILL = """
CREATE TEMPORARY TABLE beside ON COMMIT DROP AS
    SELECT s.id, s.task_id, t.slots_wanted AS wanted,
        coalesce(held.most, 0) + row_number() OVER (PARTITION BY s.task_id ORDER BY s.id) AS slot
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id LEFT JOIN (
        SELECT task_id, max(slot) AS most FROM annotator_assignment WHERE slot IS NOT NULL GROUP BY task_id
    ) held ON held.task_id = s.task_id
    WHERE s.state = 'submitted' AND s.counts AND s.slot IS NULL AND s.response_order <> '{}';

UPDATE annotator_task t SET slots_wanted = greatest(t.slots_wanted, b.most)
    FROM (SELECT task_id, max(slot) AS most FROM beside GROUP BY task_id) b WHERE b.task_id = t.id;

UPDATE annotator_assignment s SET slot = b.slot FROM beside b WHERE b.id = s.id;

UPDATE annotator_task t SET done = c.done, slots_wanted = greatest(c.wanted, c.done),
        open_slots = greatest(greatest(c.wanted, c.done) - c.held, 0)
    FROM (
        SELECT s.task_id, b.wanted, count(*) FILTER (WHERE s.state = 'submitted') AS done, count(*) AS held
        FROM annotator_assignment s JOIN (SELECT DISTINCT task_id, wanted FROM beside) b ON b.task_id = s.task_id
        WHERE s.slot IS NOT NULL GROUP BY s.task_id, b.wanted
    ) c WHERE c.task_id = t.id;
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0013_extras")]
    operations = [
        migrations.RunSQL(MARK_PREFERENCES, migrations.RunSQL.noop),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
