-- A ranking names each response of its task once. The function stands in adjudication.sql.
CREATE TRIGGER ranking_of_every_response AFTER INSERT OR UPDATE OF ranking ON annotator_annotation
    FOR EACH ROW WHEN (NEW.ranking IS NOT NULL) EXECUTE FUNCTION annotator_ranking_of_every_response();
