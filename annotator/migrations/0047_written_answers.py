"""Written answers: feedback and edits of responses; a domain and a language of tasks."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import annotator.models.domains


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0046_releases"),
    ]

    operations = [
        migrations.AddField(
            model_name="annotation",
            name="domain",
            field=models.CharField(blank=True, db_default="", default="", max_length=40, verbose_name="domain"),
        ),
        migrations.AddField(
            model_name="annotation",
            name="language",
            field=models.CharField(blank=True, db_default="", default="", max_length=16, verbose_name="language"),
        ),
        migrations.AddField(
            model_name="project",
            name="ask_edit",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Annotators may write a better version of a response.",
                verbose_name="ask for an edit",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="ask_feedback",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Annotators write what is good and bad about each response.",
                verbose_name="ask for feedback",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="ask_language",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Annotators say in which language a task is.",
                verbose_name="ask for the language",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="domains",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=40),
                blank=True,
                db_default=[],
                default=list,
                help_text="Annotators choose one of these domains, such as STEM. Leave it empty not to ask.",
                size=None,
                validators=[annotator.models.domains.names_of_domains],
                verbose_name="domains",
            ),
        ),
        migrations.AddField(
            model_name="rating",
            name="edit",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="A better version of the response, by its annotator.",
                verbose_name="edit",
            ),
        ),
        migrations.AddField(
            model_name="rating",
            name="edit_summary",
            field=models.TextField(blank=True, db_default="", default="", verbose_name="summary of the edit"),
        ),
        migrations.AddField(
            model_name="rating",
            name="feedback",
            field=models.TextField(blank=True, db_default="", default="", verbose_name="feedback"),
        ),
        migrations.AddField(
            model_name="response",
            name="edit_of",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The rating whose annotator wrote this response as a better version of another.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="edited_responses",
                to="annotator.rating",
                verbose_name="edit of",
            ),
        ),
        migrations.AddConstraint(
            model_name="rating",
            constraint=models.CheckConstraint(
                condition=models.Q(("edit_summary", ""), models.Q(("edit", ""), _negated=True), _connector="OR"),
                name="a_summary_is_of_an_edit",
            ),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.UniqueConstraint(
                condition=models.Q(("edit_of__isnull", False)),
                fields=("edit_of",),
                name="an_edit_becomes_a_response_once",
            ),
        ),
        migrations.AddIndex(
            model_name="rating",
            index=models.Index(
                condition=models.Q(("edit", ""), _negated=True), fields=["-id"], name="rating_with_an_edit"
            ),
        ),
    ]
