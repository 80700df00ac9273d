"""No queue is ordered by a champion's uncertainty any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0011_labels_in_plain_words"),
    ]

    operations = [
        migrations.RemoveField(
            model_name="scoringpass",
            name="doubt_edges",
        ),
        migrations.RemoveField(
            model_name="scoringpass",
            name="doubted",
        ),
    ]
