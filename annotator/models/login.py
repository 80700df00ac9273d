"""Wrong passwords, counted."""

from django.db import models


class LoginFailures(models.Model):
    """How many wrong passwords came lately for one account, from one address, or both: the key's digest says which."""

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField(db_index=True, help_text="when counting begins anew")

    class Meta:
        verbose_name_plural = "login failures"

    def __str__(self) -> str:
        return f"{self.count} until {self.ends_at:%H:%M}"
