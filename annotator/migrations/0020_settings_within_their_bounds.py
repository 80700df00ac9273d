"""The database holds what every door checks. A pseudonym that is the same in all projects is no more."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("annotator", "0019_rows_by_number")]
    operations = [
        migrations.AlterField(
            "project",
            "escalate_above",
            models.PositiveSmallIntegerField(
                default=2,
                help_text="a spread above this asks for more annotators",
                validators=[MaxValueValidator(4)],
            ),
        ),
        migrations.AlterField(
            "project",
            "drop_above",
            models.PositiveSmallIntegerField(
                default=2, help_text="a spread above this drops the task", validators=[MaxValueValidator(4)]
            ),
        ),
        migrations.AlterField(
            "project",
            "keep",
            models.PositiveSmallIntegerField(
                default=3,
                help_text="the most agreeing annotations that make the label",
                validators=[MinValueValidator(1), MaxValueValidator(25)],
            ),
        ),
        migrations.AddConstraint(
            "project",
            models.CheckConstraint(condition=Q(max_annotators__lte=25, keep__lte=25), name="no_task_asks_for_a_crowd"),
        ),
        migrations.AddConstraint(
            "project",
            models.CheckConstraint(
                condition=Q(escalate_above__lte=4, drop_above__lte=4), name="spreads_lie_on_the_scale"
            ),
        ),
        migrations.AddConstraint(
            "project",
            models.CheckConstraint(
                condition=Q(
                    lease_minutes__gte=1,
                    qualification_tries__gte=1,
                    gold_window__gte=2,
                    qualification_threshold__range=(-1, 1),
                    gold_threshold__range=(-1, 1),
                    review_unlikely_percent__lte=20,
                    validation_share__range=(0.01, 0.5),
                ),
                name="settings_lie_within_their_bounds",
            ),
        ),
        migrations.AddConstraint(
            "project",
            models.CheckConstraint(
                condition=Q(deleted_at=None) | Q(archived_at__isnull=False), name="only_the_archived_are_deleted"
            ),
        ),
        migrations.AddConstraint(
            "membership",
            models.CheckConstraint(
                condition=Q(offered_role="") | ~Q(offered_role=F("role")), name="nobody_is_offered_what_they_have"
            ),
        ),
        migrations.RemoveField("user", "pseudonym"),
        # Until here the one by slug has served to find each project's entries.
        migrations.RemoveIndex("auditentry", "audit_by_project"),
        migrations.AddIndex("auditentry", models.Index(fields=["project_id", "-at"], name="audit_by_project")),
    ]
