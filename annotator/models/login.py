"""Counts of wrong passwords (annotator/accounts/logins.py sets their limits)."""

from django.db import models


class LoginFailures(models.Model):
    """The number of recent wrong passwords for an account, from an address or browser, or for a combination of them."""

    # A digest of what is counted: people type passwords into the field for the name, and nobody must read them here.
    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField(db_index=True, help_text="when counting begins anew")

    class Meta:
        verbose_name_plural = "login failures"

    def __str__(self) -> str:
        return f"{self.count} until {self.ends_at:%H:%M}"
