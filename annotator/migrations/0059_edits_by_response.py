from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotator", "0058_project_of_labels")]

    operations = [
        migrations.AddIndex(
            model_name="rating",
            index=models.Index(
                condition=models.Q(("edit", ""), _negated=True), fields=["response"], name="edit_of_response"
            ),
        ),
    ]
