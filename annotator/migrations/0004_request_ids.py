"""Callers name their request by a UUID where a second call would make a second row; kept answers go."""

from django.db import migrations, models

HELP = "made up by whoever asked, who may ask again"
ONCE = (
    ("invitation", ["project", "request_id"], "an_invitation_is_made_once_for_a_request"),
    ("release", ["project", "request_id"], "a_release_is_made_once_for_a_request"),
    ("exportjob", ["project", "requested_by", "request_id"], "an_export_is_made_once_for_a_request"),
)


class Migration(migrations.Migration):
    dependencies = [("annotator", "0003_one_table_of_the_audit")]
    operations = [
        migrations.DeleteModel("IdempotentCall"),
        *(
            migrations.AddField(model, "request_id", models.UUIDField(blank=True, null=True, help_text=HELP))
            for model, _fields, _name in ONCE
        ),
        *(
            migrations.AddConstraint(model, models.UniqueConstraint(fields=fields, name=name))
            for model, fields, name in ONCE
        ),
    ]
