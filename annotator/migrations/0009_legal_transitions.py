"""PostgreSQL itself refuses a step between states that is not in the table of Assignment.TRANSITIONS."""

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
MAKE = f"""
CREATE FUNCTION annotator_refuse_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'legal_transition: an assignment that is % cannot become %', OLD.state, NEW.state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'legal_transition';
END $$;
CREATE TRIGGER legal_transition BEFORE UPDATE OF state ON annotator_assignment
    FOR EACH ROW WHEN (OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN ({", ".join(map(str, STEPS))}))
    EXECUTE FUNCTION annotator_refuse_transition();
"""
DROP = """
DROP TRIGGER legal_transition ON annotator_assignment;
DROP FUNCTION annotator_refuse_transition();
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0008_agreement_totals")]
    operations = [migrations.RunSQL(MAKE, DROP)]
