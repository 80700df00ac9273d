from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotator", "0062_names_begin_with_a_letter_or_a_digit")]

    operations = [
        migrations.AddField(model_name="importjob", name="ratings_added", field=models.PositiveIntegerField(default=0)),
        migrations.AddField(
            model_name="importjob",
            name="ratings_left_out",
            field=models.PositiveIntegerField(default=0, help_text="that do not count, although their rows went in"),
        ),
    ]
