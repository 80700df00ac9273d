-- A ranking names each response of its task once. The function stands in adjudication.sql.
CREATE TRIGGER ranking_of_every_response AFTER INSERT OR UPDATE OF ranking ON annotator_annotation
    FOR EACH ROW WHEN (NEW.ranking IS NOT NULL) EXECUTE FUNCTION annotator_ranking_of_every_response();

-- The project and the annotator are those of the assignment, whatever the statement says; neither ever changes.
CREATE OR REPLACE FUNCTION annotator_annotation_knows_its_project() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT t.project_id, s.annotator_id INTO NEW.project_id, NEW.annotator_id
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id WHERE s.id = NEW.assignment_id;
    RETURN NEW;
END $$;
CREATE TRIGGER annotation_knows_its_project BEFORE INSERT ON annotator_annotation
    FOR EACH ROW EXECUTE FUNCTION annotator_annotation_knows_its_project();
