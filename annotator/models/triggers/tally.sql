-- Whoever has rated in a project has a pseudonym there, even after leaving it. The function stands in membership.sql.
CREATE TRIGGER raters_have_a_pseudonym AFTER INSERT ON annotator_tally
    FOR EACH ROW EXECUTE FUNCTION annotator_give_pseudonym('annotator_id');
