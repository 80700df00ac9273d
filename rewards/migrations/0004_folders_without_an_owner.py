"""Files of a deleted project do not stay behind: triggers note the folders, and the light worker removes them."""

from django.db import migrations, models

MAKE = """
CREATE FUNCTION rewards_snapshot_leaves_its_folder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rewards_ownerlessfolder (path) SELECT OLD.path WHERE OLD.path LIKE 'snapshots/%/%';
    RETURN NULL;
END $$;
CREATE TRIGGER snapshot_leaves_its_folder AFTER DELETE ON rewards_snapshot FOR EACH ROW
    EXECUTE FUNCTION rewards_snapshot_leaves_its_folder();

CREATE FUNCTION rewards_run_leaves_its_folder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rewards_ownerlessfolder (path) VALUES ('runs/' || OLD.id);
    RETURN NULL;
END $$;
CREATE TRIGGER run_leaves_its_folder AFTER DELETE ON rewards_trainingrun FOR EACH ROW
    EXECUTE FUNCTION rewards_run_leaves_its_folder();
"""
DROP = """
DROP TRIGGER run_leaves_its_folder ON rewards_trainingrun;
DROP FUNCTION rewards_run_leaves_its_folder();
DROP TRIGGER snapshot_leaves_its_folder ON rewards_snapshot;
DROP FUNCTION rewards_snapshot_leaves_its_folder();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0003_scoring_in_lanes"),
    ]

    operations = [
        migrations.CreateModel(
            name="OwnerlessFolder",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(help_text="relative to the artifacts' folder", max_length=300)),
            ],
        ),
        migrations.RunSQL(MAKE, DROP),
    ]
