import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0047_written_answers"),
    ]

    operations = [
        migrations.CreateModel(
            name="IdempotentCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=128)),
                ("fingerprint", models.CharField(help_text="a digest of method, address and body", max_length=64)),
                ("attempt", models.UUIDField(default=uuid.uuid4)),
                ("begun_at", models.DateTimeField(db_index=True)),
                ("lost_at", models.DateTimeField(help_text="from then on a call without an answer is taken for lost")),
                ("status", models.PositiveSmallIntegerField(help_text="of HTTP; empty: no answer yet", null=True)),
                ("body", models.TextField(help_text="JSON, without secrets")),
                ("location", models.CharField(max_length=500)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "key"), name="one_call_per_account_and_key"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status", None), models.Q(("status__gte", 200), ("status__lt", 300)), _connector="OR"
                        ),
                        name="only_done_calls_are_answered_again",
                    ),
                ],
            },
        ),
    ]
