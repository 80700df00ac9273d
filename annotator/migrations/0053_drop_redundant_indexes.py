"""Drops the indexes of foreign keys with which another index of the table begins: one to write less for each row."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

INDEXES = {
    "annotator_annotation_assignment_id_12229d07": ("annotator_annotation", "assignment_id"),
    "annotator_assignment_task_id_e573b956": ("annotator_assignment", "task_id"),
    "annotator_attribute_rubric_id_afc7718f": ("annotator_attribute", "rubric_id"),
    "annotator_exclusion_project_id_078fe178": ("annotator_exclusion", "project_id"),
    "annotator_guideline_project_id_fe86d0f6": ("annotator_guideline", "project_id"),
    "annotator_importedrater_project_id_ca7b6dc7": ("annotator_importedrater", "project_id"),
    "annotator_invitation_project_id_8c04b397": ("annotator_invitation", "project_id"),
    "annotator_invitationuse_invitation_id_554afcce": ("annotator_invitationuse", "invitation_id"),
    "annotator_label_response_id_3d4f63ca": ("annotator_label", "response_id"),
    "annotator_membership_user_id_f14093c8": ("annotator_membership", "user_id"),
    "annotator_piispan_task_id_55cce2d1": ("annotator_piispan", "task_id"),
    "annotator_pseudonym_project_id_fa89fd5e": ("annotator_pseudonym", "project_id"),
    "annotator_qualificationanswer_run_id_7f4e161a": ("annotator_qualificationanswer", "run_id"),
    "annotator_qualificationrun_member_id_c7dc0ea4": ("annotator_qualificationrun", "member_id"),
    "annotator_raterquality_project_id_3b0351fd": ("annotator_raterquality", "project_id"),
    "annotator_rating_annotation_id_88d91f11": ("annotator_rating", "annotation_id"),
    "annotator_rubric_project_id_b25ce409": ("annotator_rubric", "project_id"),
    "annotator_tally_annotator_id_9a6c3ca0": ("annotator_tally", "annotator_id"),
}


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0052_segments_of_gold_tasks"),
    ]

    operations = [
        # By their names: Django would drop every index of such a column alone, those of constraints included.
        *(
            migrations.RunSQL(f"DROP INDEX {name}", f"CREATE INDEX {name} ON {table} ({column})")
            for name, (table, column) in INDEXES.items()
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="annotation",
                    name="assignment",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="annotations",
                        to="annotator.assignment",
                        verbose_name="assignment",
                    ),
                ),
                migrations.AlterField(
                    model_name="assignment",
                    name="task",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="assignments",
                        to="annotator.task",
                    ),
                ),
                migrations.AlterField(
                    model_name="attribute",
                    name="rubric",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attributes",
                        to="annotator.rubric",
                    ),
                ),
                migrations.AlterField(
                    model_name="exclusion",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="exclusions",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                migrations.AlterField(
                    model_name="guideline",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="guidelines",
                        to="annotator.project",
                    ),
                ),
                migrations.AlterField(
                    model_name="importedrater",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imported_raters",
                        to="annotator.project",
                    ),
                ),
                migrations.AlterField(
                    model_name="invitation",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="annotator.project",
                    ),
                ),
                migrations.AlterField(
                    model_name="invitationuse",
                    name="invitation",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="annotator.invitation",
                    ),
                ),
                migrations.AlterField(
                    model_name="label",
                    name="response",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="labels",
                        to="annotator.response",
                    ),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="user",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                migrations.AlterField(
                    model_name="piispan",
                    name="task",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pii_spans",
                        to="annotator.task",
                    ),
                ),
                migrations.AlterField(
                    model_name="pseudonym",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pseudonyms",
                        to="annotator.project",
                    ),
                ),
                migrations.AlterField(
                    model_name="qualificationanswer",
                    name="run",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="answers",
                        to="annotator.qualificationrun",
                    ),
                ),
                migrations.AlterField(
                    model_name="qualificationrun",
                    name="member",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="qualification_runs",
                        to="annotator.membership",
                    ),
                ),
                migrations.AlterField(
                    model_name="raterquality",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rater_qualities",
                        to="annotator.project",
                    ),
                ),
                migrations.AlterField(
                    model_name="rating",
                    name="annotation",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ratings",
                        to="annotator.annotation",
                    ),
                ),
                migrations.AlterField(
                    model_name="rubric",
                    name="project",
                    field=models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="own_rubrics",
                        to="annotator.project",
                    ),
                ),
                migrations.AlterField(
                    model_name="tally",
                    name="annotator",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tallies",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ]
        ),
    ]
