"""Labels and explanations of fields, as the admin shows them in each language; nothing in the database changes."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import annotator.models.project
import annotator.models.token
from annotator.db.label_migrations import Relabel


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0031_a_rating_may_become_a_skip"),
    ]

    operations = [
        Relabel(
            [
                migrations.AlterModelOptions(
                    name="annotation",
                    options={"verbose_name": "annotation", "verbose_name_plural": "annotations"},
                ),
                migrations.AlterModelOptions(
                    name="auditentry",
                    options={"verbose_name": "audit entry", "verbose_name_plural": "audit entries"},
                ),
                migrations.AlterModelOptions(
                    name="exclusion",
                    options={"verbose_name": "exclusion", "verbose_name_plural": "exclusions"},
                ),
                migrations.AlterModelOptions(
                    name="expertrating",
                    options={"verbose_name": "expert rating", "verbose_name_plural": "expert ratings"},
                ),
                migrations.AlterModelOptions(
                    name="gold",
                    options={"verbose_name": "gold task", "verbose_name_plural": "gold tasks"},
                ),
                migrations.AlterModelOptions(
                    name="guideline",
                    options={
                        "ordering": ["-version"],
                        "verbose_name": "guideline",
                        "verbose_name_plural": "guidelines",
                    },
                ),
                migrations.AlterModelOptions(
                    name="membership",
                    options={
                        "ordering": ["user__username"],
                        "verbose_name": "member",
                        "verbose_name_plural": "members",
                    },
                ),
                migrations.AlterModelOptions(
                    name="project",
                    options={"ordering": ["name"], "verbose_name": "project", "verbose_name_plural": "projects"},
                ),
                migrations.AlterModelOptions(
                    name="qualificationrun",
                    options={
                        "ordering": ["kind", "number"],
                        "verbose_name": "qualification run",
                        "verbose_name_plural": "qualification runs",
                    },
                ),
                migrations.AlterModelOptions(
                    name="rating",
                    options={"verbose_name": "rating", "verbose_name_plural": "ratings"},
                ),
                migrations.AlterModelOptions(
                    name="response",
                    options={"ordering": ["position"], "verbose_name": "response", "verbose_name_plural": "responses"},
                ),
                migrations.AlterModelOptions(
                    name="task",
                    options={"verbose_name": "task", "verbose_name_plural": "tasks"},
                ),
                migrations.AlterModelOptions(
                    name="token",
                    options={"verbose_name": "token", "verbose_name_plural": "tokens"},
                ),
                migrations.AlterField(
                    model_name="adjudication",
                    name="reason",
                    field=models.CharField(
                        choices=[
                            ("ambiguous_prompt", "The prompt can be read in more than one way"),
                            ("guideline_gap", "The guidelines leave this open"),
                            ("slip", "Somebody made a mistake"),
                            ("other", "Another reason"),
                        ],
                        max_length=20,
                    ),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="active_seconds",
                    field=models.FloatField(blank=True, null=True, verbose_name="active seconds"),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="assignment",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="annotations",
                        to="annotator.assignment",
                        verbose_name="assignment",
                    ),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="content_hash",
                    field=models.CharField(max_length=64, verbose_name="content hash"),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="guideline_version",
                    field=models.PositiveIntegerField(default=0, verbose_name="guideline version"),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="is_current",
                    field=models.BooleanField(default=True, verbose_name="is current"),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="justification",
                    field=models.TextField(blank=True, verbose_name="justification"),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="origin",
                    field=models.CharField(
                        choices=[("person", "Person"), ("imported", "Imported"), ("simulated", "Simulated")],
                        default="person",
                        max_length=10,
                        verbose_name="origin",
                    ),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="preference",
                    field=models.SmallIntegerField(blank=True, null=True, verbose_name="preference"),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="ranking",
                    field=models.JSONField(
                        blank=True,
                        help_text="Tiers of response ids, the best first: [[response, ...], ...].",
                        null=True,
                        verbose_name="ranking",
                    ),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="revision",
                    field=models.PositiveSmallIntegerField(default=1, verbose_name="revision"),
                ),
                migrations.AlterField(
                    model_name="annotation",
                    name="submitted_at",
                    field=models.DateTimeField(verbose_name="submitted at"),
                ),
                migrations.AlterField(
                    model_name="auditentry",
                    name="project",
                    field=models.CharField(
                        blank=True, help_text="its slug at the time", max_length=50, verbose_name="project"
                    ),
                ),
                migrations.AlterField(
                    model_name="auditentry",
                    name="subject",
                    field=models.CharField(
                        help_text="what was changed, like: task t-17", max_length=300, verbose_name="subject"
                    ),
                ),
                migrations.AlterField(
                    model_name="auditentry",
                    name="token",
                    field=models.CharField(
                        blank=True,
                        help_text="the first characters of the token's digest",
                        max_length=25,
                        verbose_name="token",
                    ),
                ),
                migrations.AlterField(
                    model_name="exclusion",
                    name="annotator",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="exclusions",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="annotator",
                    ),
                ),
                migrations.AlterField(
                    model_name="exclusion",
                    name="by",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="excluded by",
                    ),
                ),
                migrations.AlterField(
                    model_name="exclusion",
                    name="made_at",
                    field=models.DateTimeField(verbose_name="excluded at"),
                ),
                migrations.AlterField(
                    model_name="exclusion",
                    name="project",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="exclusions",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                migrations.AlterField(
                    model_name="exclusion",
                    name="readmitted_at",
                    field=models.DateTimeField(
                        blank=True,
                        help_text="Since then, the annotator's work is being brought back.",
                        null=True,
                        verbose_name="readmitted at",
                    ),
                ),
                migrations.AlterField(
                    model_name="exclusion",
                    name="reason",
                    field=models.TextField(verbose_name="reason"),
                ),
                migrations.AlterField(
                    model_name="expertrating",
                    name="explanation",
                    field=models.TextField(blank=True, verbose_name="explanation"),
                ),
                migrations.AlterField(
                    model_name="expertrating",
                    name="response",
                    field=models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="expert_rating",
                        to="annotator.response",
                        verbose_name="response",
                    ),
                ),
                migrations.AlterField(
                    model_name="gold",
                    name="task",
                    field=models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="gold",
                        to="annotator.task",
                        verbose_name="task",
                    ),
                ),
                migrations.AlterField(
                    model_name="gold",
                    name="use",
                    field=models.CharField(
                        choices=[("practice", "Practice"), ("test", "Test"), ("stream", "Stream")],
                        max_length=10,
                        verbose_name="use",
                    ),
                ),
                migrations.AlterField(
                    model_name="guideline",
                    name="created_at",
                    field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
                ),
                migrations.AlterField(
                    model_name="guideline",
                    name="text",
                    field=models.TextField(verbose_name="text"),
                ),
                migrations.AlterField(
                    model_name="guideline",
                    name="version",
                    field=models.PositiveIntegerField(verbose_name="version"),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="acknowledged_version",
                    field=models.PositiveIntegerField(default=0, verbose_name="acknowledged version"),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="extra_tries",
                    field=models.PositiveSmallIntegerField(
                        default=0,
                        help_text="Tries of the test in addition to the project's number.",
                        verbose_name="extra tries",
                    ),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="gold_counts_from",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="gold tasks count from"),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="languages",
                    field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16),
                        blank=True,
                        default=list,
                        help_text="Languages of the tasks that this person gets. Leave it empty for all languages.",
                        size=None,
                        verbose_name="languages",
                    ),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="paused_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="paused at"),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="paused_because",
                    field=models.CharField(
                        blank=True,
                        choices=[
                            ("gold", "ratings of gold tasks differ too much from the experts'"),
                            ("manager", "a manager's decision"),
                        ],
                        max_length=20,
                        verbose_name="paused because of",
                    ),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="project",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="qualified_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="qualified at"),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="quota",
                    field=models.PositiveIntegerField(
                        blank=True,
                        help_text="Tasks that this person may rate. Leave it empty for the project's number; 0 means no limit.",
                        null=True,
                        verbose_name="quota",
                    ),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="role",
                    field=models.CharField(
                        choices=[("annotator", "Annotator"), ("reviewer", "Reviewer"), ("manager", "Manager")],
                        default="annotator",
                        max_length=10,
                        verbose_name="role",
                    ),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="user",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="ask_confidence",
                    field=models.BooleanField(default=False, verbose_name="ask for confidence"),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="ask_preference",
                    field=models.BooleanField(default=False, verbose_name="ask for a preference"),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="ask_safety",
                    field=models.BooleanField(default=False, verbose_name="ask about safety"),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="base_annotators",
                    field=models.PositiveSmallIntegerField(
                        default=3,
                        help_text="Annotators who are first asked to rate each task.",
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="base annotators",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="description",
                    field=models.TextField(blank=True, verbose_name="description"),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="drop_above",
                    field=models.PositiveSmallIntegerField(
                        default=2,
                        help_text="If the spread is above this, the task is dropped.",
                        validators=[django.core.validators.MaxValueValidator(4)],
                        verbose_name="drop above",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="escalate_above",
                    field=models.PositiveSmallIntegerField(
                        default=2,
                        help_text="If the spread is above this, more annotators are asked.",
                        validators=[django.core.validators.MaxValueValidator(4)],
                        verbose_name="escalate above",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="gold_every",
                    field=models.PositiveSmallIntegerField(
                        default=0,
                        help_text="About one in this many tasks is a gold task; 0 means none.",
                        verbose_name="gold every",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="gold_threshold",
                    field=models.FloatField(
                        default=0.3,
                        help_text="Annotators are paused if their mean weighted kappa with the experts is below this.",
                        validators=[
                            django.core.validators.MinValueValidator(-1),
                            django.core.validators.MaxValueValidator(1),
                        ],
                        verbose_name="gold threshold",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="gold_window",
                    field=models.PositiveSmallIntegerField(
                        default=10,
                        help_text="How many of an annotator's latest gold tasks are judged.",
                        validators=[django.core.validators.MinValueValidator(2)],
                        verbose_name="gold window",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="keep",
                    field=models.PositiveSmallIntegerField(
                        default=3,
                        help_text="The label is made of this many annotations, those that are closest to each other.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(25),
                        ],
                        verbose_name="keep",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="lease_minutes",
                    field=models.PositiveSmallIntegerField(
                        default=30,
                        help_text="How long an annotator who does nothing keeps a task.",
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="lease minutes",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="max_annotators",
                    field=models.PositiveSmallIntegerField(
                        default=5,
                        help_text="Most annotators for a task, if their ratings differ too much.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(25),
                        ],
                        verbose_name="max annotators",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="name",
                    field=models.CharField(max_length=120, verbose_name="name"),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="paused",
                    field=models.BooleanField(
                        default=False,
                        help_text="Nobody gets a task. Annotators can still submit what they have begun.",
                        verbose_name="paused",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="promote_automatically",
                    field=models.BooleanField(
                        default=True,
                        help_text="A better model takes over automatically. Otherwise it waits for a manager's decision.",
                        verbose_name="promote automatically",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="qualification_required",
                    field=models.BooleanField(
                        default=False,
                        help_text="Annotators must pass a test of gold tasks before their first task.",
                        verbose_name="qualification required",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="qualification_threshold",
                    field=models.FloatField(
                        default=0.5,
                        help_text="Mean weighted kappa with the experts that is needed to pass the test.",
                        validators=[
                            django.core.validators.MinValueValidator(-1),
                            django.core.validators.MaxValueValidator(1),
                        ],
                        verbose_name="qualification threshold",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="qualification_tries",
                    field=models.PositiveSmallIntegerField(
                        default=3,
                        help_text="How often the test may be taken.",
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="qualification tries",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="queue_order",
                    field=models.CharField(
                        choices=[
                            ("priority", "By priority"),
                            ("uncertain", "By priority, then the tasks that the model is least certain about"),
                        ],
                        default="priority",
                        help_text="Which untouched task comes next. The model's uncertainty is known for tasks that it has scored.",
                        max_length=9,
                        verbose_name="queue order",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="quota",
                    field=models.PositiveIntegerField(
                        default=0,
                        help_text="Tasks that one annotator may rate; 0 means no limit.",
                        verbose_name="quota",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="retrain_after_hours",
                    field=models.PositiveIntegerField(
                        default=0,
                        help_text="Retrain when the last snapshot is this old and there are new labels; 0 turns this off.",
                        verbose_name="retrain after hours",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="retrain_after_labels",
                    field=models.PositiveIntegerField(
                        default=0,
                        help_text="Retrain after this many new labels; 0 turns this off.",
                        verbose_name="retrain after labels",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="retrain_cooldown_minutes",
                    field=models.PositiveIntegerField(
                        default=30,
                        help_text="Shortest time between the end of a run and the next automatic one.",
                        verbose_name="retrain cooldown minutes",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="review_unlikely_percent",
                    field=models.PositiveSmallIntegerField(
                        default=2,
                        help_text="Percentage of annotations that go to review, because a model finds them most unlikely; 0 means none.",
                        validators=[django.core.validators.MaxValueValidator(20)],
                        verbose_name="review unlikely percent",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="rubric",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="projects",
                        to="annotator.rubric",
                        verbose_name="rubric",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="slug",
                    field=models.SlugField(unique=True, verbose_name="slug"),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="spread_attribute",
                    field=models.SlugField(
                        default="helpfulness",
                        help_text="The attribute whose spread decides.",
                        verbose_name="spread attribute",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="spread_scope",
                    field=models.CharField(
                        choices=[("kept", "Kept"), ("all", "All")],
                        default="kept",
                        help_text="Whether the decision to drop a task looks at the kept annotations or at all of them.",
                        max_length=4,
                        verbose_name="spread scope",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="training_config",
                    field=models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Settings for the trainer, such as epochs.",
                        validators=[annotator.models.project.usable_by_the_trainer],
                        verbose_name="training config",
                    ),
                ),
                migrations.AlterField(
                    model_name="project",
                    name="validation_share",
                    field=models.FloatField(
                        default=0.1,
                        help_text="Share of prompts held out to judge models. Only this share and its text decide whether a prompt is held out.",
                        validators=[
                            django.core.validators.MinValueValidator(0.01),
                            django.core.validators.MaxValueValidator(0.5),
                        ],
                        verbose_name="validation share",
                    ),
                ),
                migrations.AlterField(
                    model_name="qualificationrun",
                    name="finished_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="finished at"),
                ),
                migrations.AlterField(
                    model_name="qualificationrun",
                    name="kappa",
                    field=models.FloatField(blank=True, null=True, verbose_name="kappa"),
                ),
                migrations.AlterField(
                    model_name="qualificationrun",
                    name="kind",
                    field=models.CharField(
                        choices=[("practice", "Practice"), ("test", "Test")], max_length=10, verbose_name="kind"
                    ),
                ),
                migrations.AlterField(
                    model_name="qualificationrun",
                    name="number",
                    field=models.PositiveSmallIntegerField(verbose_name="number"),
                ),
                migrations.AlterField(
                    model_name="qualificationrun",
                    name="passed",
                    field=models.BooleanField(blank=True, null=True, verbose_name="passed"),
                ),
                migrations.AlterField(
                    model_name="qualificationrun",
                    name="started_at",
                    field=models.DateTimeField(verbose_name="started at"),
                ),
                migrations.AlterField(
                    model_name="rating",
                    name="checks",
                    field=models.JSONField(default=list, verbose_name="checks"),
                ),
                migrations.AlterField(
                    model_name="rating",
                    name="confidence",
                    field=models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="2 is very sure, 1 somewhat sure, 0 not sure.",
                        null=True,
                        verbose_name="confidence",
                    ),
                ),
                migrations.AlterField(
                    model_name="rating",
                    name="response",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ratings",
                        to="annotator.response",
                        verbose_name="response",
                    ),
                ),
                migrations.AlterField(
                    model_name="rating",
                    name="safe",
                    field=models.BooleanField(blank=True, null=True, verbose_name="safe"),
                ),
                migrations.AlterField(
                    model_name="response",
                    name="model",
                    field=models.CharField(blank=True, max_length=200, verbose_name="model"),
                ),
                migrations.AlterField(
                    model_name="response",
                    name="position",
                    field=models.PositiveSmallIntegerField(verbose_name="position"),
                ),
                migrations.AlterField(
                    model_name="response",
                    name="text",
                    field=models.TextField(verbose_name="text"),
                ),
                migrations.AlterField(
                    model_name="task",
                    name="external_id",
                    field=models.CharField(max_length=200, verbose_name="external id"),
                ),
                migrations.AlterField(
                    model_name="task",
                    name="metadata",
                    field=models.JSONField(blank=True, default=dict, verbose_name="metadata"),
                ),
                migrations.AlterField(
                    model_name="task",
                    name="open_slots",
                    field=models.PositiveSmallIntegerField(default=3, verbose_name="open slots"),
                ),
                migrations.AlterField(
                    model_name="task",
                    name="priority",
                    field=models.SmallIntegerField(default=0, verbose_name="priority"),
                ),
                migrations.AlterField(
                    model_name="task",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tasks",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                migrations.AlterField(
                    model_name="task",
                    name="redacted_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="redacted at"),
                ),
                migrations.AlterField(
                    model_name="task",
                    name="review_because",
                    field=models.CharField(
                        blank=True,
                        choices=[
                            ("dropped", "Ratings too far apart"),
                            ("safety", "Disagreement on safety"),
                            ("quarantine", "Set aside"),
                            ("unlikely", "Unlikely according to the model"),
                        ],
                        db_default="",
                        max_length=12,
                    ),
                ),
                migrations.AlterField(
                    model_name="task",
                    name="slots_wanted",
                    field=models.PositiveSmallIntegerField(default=3, verbose_name="slots wanted"),
                ),
                migrations.AlterField(
                    model_name="task",
                    name="state",
                    field=models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("complete", "Complete"),
                            ("quarantined", "Quarantined"),
                            ("retired", "Retired"),
                            ("gold", "Gold"),
                        ],
                        default="open",
                        max_length=12,
                        verbose_name="state",
                    ),
                ),
                migrations.AlterField(
                    model_name="token",
                    name="last_used_at",
                    field=models.DateTimeField(
                        editable=False, help_text="Accurate to the hour.", null=True, verbose_name="last used at"
                    ),
                ),
                migrations.AlterField(
                    model_name="token",
                    name="name",
                    field=models.CharField(
                        blank=True,
                        help_text="What it is for, in its owner's words.",
                        max_length=80,
                        verbose_name="name",
                    ),
                ),
                migrations.AlterField(
                    model_name="token",
                    name="scopes",
                    field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20),
                        default=annotator.models.token.every_scope,
                        size=None,
                        verbose_name="scopes",
                    ),
                ),
            ]
        )
    ]
