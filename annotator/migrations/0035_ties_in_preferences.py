"""A preference may be a tie where a project allows it."""

from django.db import migrations, models

# Counts of preferences have a place more, so that those of before cannot be read; the light worker counts again.
COUNT_AGAIN = """
DELETE FROM annotator_agreementstate;
DELETE FROM annotator_agreementtotal;
DELETE FROM annotator_countedtask;
DELETE FROM annotator_staleagreement;
INSERT INTO annotator_staleagreement (project_id, task_id) SELECT t.project_id, t.id FROM annotator_task t
    WHERE EXISTS (SELECT FROM annotator_assignment s WHERE s.task_id = t.id AND s.state = 'submitted');
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0034_no_order_by_uncertainty"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="annotation",
            name="preference_on_the_scale",
        ),
        migrations.AddField(
            model_name="project",
            name="allow_ties",
            field=models.BooleanField(
                default=False,
                help_text="Annotators may answer that both responses are equally good.",
                verbose_name="allow ties",
            ),
        ),
        migrations.AddConstraint(
            model_name="annotation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("preference__isnull", True), ("preference__in", (-100, -3, -2, -1, 0, 1, 2, 3)), _connector="OR"
                ),
                name="preference_on_the_scale",
            ),
        ),
        migrations.RunSQL(COUNT_AGAIN, COUNT_AGAIN),
    ]
