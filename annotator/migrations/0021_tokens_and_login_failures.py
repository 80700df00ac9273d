"""Tokens with a name, scopes and their last use; counts of wrong passwords; marks of accounts."""

import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import annotator.models.account_names
import annotator.models.token


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0020_settings_within_their_bounds"),
    ]

    operations = [
        migrations.CreateModel(
            name="LoginFailures",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("count", models.PositiveIntegerField()),
                ("ends_at", models.DateTimeField(db_index=True, help_text="when counting begins anew")),
            ],
            options={
                "verbose_name_plural": "login failures",
            },
        ),
        migrations.AddField(
            model_name="user",
            name="made_by_demo",
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.AddField(
            model_name="user",
            name="must_change_password",
            field=models.BooleanField(
                default=False, help_text="somebody else chose the password; the pages ask for another one first"
            ),
        ),
        migrations.AlterField(
            model_name="user",
            name="username",
            field=models.CharField(
                help_text="at most 150 letters, digits and @ . + - _",
                max_length=150,
                unique=True,
                validators=[
                    django.contrib.auth.validators.UnicodeUsernameValidator(),
                    annotator.models.account_names.require_unmistakable,
                ],
            ),
        ),
        migrations.CreateModel(
            name="Token",
            fields=[
                ("token_key", models.CharField(db_index=True, max_length=25)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("expiry", models.DateTimeField(blank=True, null=True)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=128, unique=True)),
                ("name", models.CharField(blank=True, help_text="what it is for, in its owner's words", max_length=80)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20),
                        default=annotator.models.token.every_scope,
                        size=None,
                    ),
                ),
                ("last_used_at", models.DateTimeField(editable=False, help_text="to the hour", null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="auth_token_set",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "annotator_token",
            },
        ),
    ]
