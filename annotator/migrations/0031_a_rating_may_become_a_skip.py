"""A submitted assignment may become skipped: its annotator found personal information, and withdrew the rating."""

from django.db import migrations

STEPS = [
    ("leased", "submitted"),
    ("leased", "skipped"),
    ("leased", "released"),
    ("leased", "expired"),
    ("expired", "leased"),
    ("expired", "submitted"),
    ("expired", "skipped"),
    ("released", "leased"),
    ("released", "submitted"),
    ("released", "skipped"),
    ("skipped", "leased"),
]
WITH_WITHDRAWAL = [*STEPS, ("submitted", "skipped")]


def trigger(steps: list[tuple[str, str]]) -> str:
    return f"""
    DROP TRIGGER legal_transition ON annotator_assignment;
    CREATE TRIGGER legal_transition BEFORE UPDATE OF state ON annotator_assignment
        FOR EACH ROW WHEN (OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN ({", ".join(map(str, steps))}))
        EXECUTE FUNCTION annotator_refuse_transition();
    """


class Migration(migrations.Migration):
    dependencies = [("annotator", "0030_side_by_side_unless_chosen")]
    operations = [migrations.RunSQL(trigger(WITH_WITHDRAWAL), trigger(STEPS))]
