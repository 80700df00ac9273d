"""Logs and errors of earlier runs held folders of this machine, which managers read; settings stay as they were."""

from django.db import migrations

from rewards.places import value_without_places

TOLD = ("log", "error", "progress")


def leave_out(apps, schema_editor):  # type: ignore[no-untyped-def]
    for run in apps.get_model("rewards", "TrainingRun").objects.only(*TOLD).iterator(chunk_size=100):
        before = {name: getattr(run, name) for name in TOLD}
        after = {name: value_without_places(value) for name, value in before.items()}
        if after != before:
            for name, value in after.items():
                setattr(run, name, value)
            run.save(update_fields=list(TOLD))


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0007_time_that_runs_worked"),
    ]

    operations = [
        migrations.RunPython(leave_out, migrations.RunPython.noop),
    ]
