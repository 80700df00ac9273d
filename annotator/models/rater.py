"""The pseudonyms of raters in a project and its exports, and the accounts behind imported ratings."""

import secrets

from django.db import models


def new_pseudonym() -> str:
    return f"r-{secrets.token_hex(5)}"


class Pseudonym(models.Model):
    """The name that a project uses for a person where user names are not shown. No other project knows it.

    Triggers give one to every member and to everybody who has rated.
    """

    user = models.ForeignKey("annotator.User", on_delete=models.CASCADE, related_name="pseudonyms")
    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, db_index=False, related_name="pseudonyms"
    )
    name = models.CharField(max_length=32, default=new_pseudonym)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="one_pseudonym_per_person_and_project"),
            models.UniqueConstraint(fields=["project", "name"], name="one_person_per_pseudonym_and_project"),
        ]

    def __str__(self) -> str:
        return self.name


class ImportedRater(models.Model):
    """The account behind a rater of imported files, who is known only by a place in the file's lists."""

    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, db_index=False, related_name="imported_raters"
    )
    place = models.CharField(max_length=40, help_text="such as rater-1 or preference-2")
    user = models.ForeignKey("annotator.User", on_delete=models.PROTECT, related_name="imported_places")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "place"], name="one_imported_rater_per_place"),
        ]

    def __str__(self) -> str:
        return f"{self.place} of {self.project}"
