"""The forms by which managers invite and change people, and those that the invited fill in."""

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.infrastructure.limits import LONGEST_NOTE, MOST_AHEAD
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stale_edits import FIELD, ChangedMeanwhile, sealed
from annotator.managing import invitation_mails, members
from annotator.managing.invitations import (
    DAYS,
    LARGEST_QUOTA,
    LONGEST_NAME,
    MOST_DAYS,
    InvitationInput,
    UnusableInvitation,
)
from annotator.managing.member_actions import ACTIONS
from annotator.models import MOST_PLACES, Membership, Project, Role, User
from annotator.pages.projects.seen import SeenField, Theirs, theirs

LONGEST_LIST = 200_000


class LanguagesField(forms.CharField):
    """Languages by their codes, with spaces or commas between them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            label=gettext_lazy("Languages"),
            required=False,
            max_length=400,
            help_text=gettext_lazy("Codes as tasks have them, such as “en de”. Empty: all languages."),
            **options,
        )

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        return [code for code in (super().to_python(value) or "").replace(",", " ").split() if code]

    def run_validators(self, value: Any) -> None:
        """Checks the text as a whole; which languages there are is for the project to say."""
        super().run_validators(" ".join(value))

    def prepare_value(self, value: Any) -> str:
        return " ".join(value) if isinstance(value, list) else value


def quota_field() -> forms.IntegerField:
    return forms.IntegerField(
        label=gettext_lazy("Quota"),
        required=False,
        min_value=0,
        max_value=LARGEST_QUOTA,
        help_text=gettext_lazy("Tasks that each person may rate. Empty: the project's number; 0: no limit."),
    )


def days_field() -> forms.IntegerField:
    return forms.IntegerField(
        label=gettext_lazy("Days until it expires"), min_value=1, max_value=MOST_DAYS, initial=DAYS
    )


class InvitationForm(forms.Form):
    """Asks whom a new link is to let in, and for how long."""

    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=Role.choices)
    places = forms.IntegerField(
        label=gettext_lazy("People"),
        min_value=1,
        max_value=MOST_PLACES,
        initial=1,
        help_text=gettext_lazy("How many may join by this link."),
    )
    days = days_field()
    languages = LanguagesField()
    quota = quota_field()
    meant_for = forms.CharField(
        label=gettext_lazy("For whom"),
        required=False,
        max_length=LONGEST_NAME,
        help_text=gettext_lazy("A note for your own list. People choose their account's name themselves."),
    )
    email = forms.EmailField(
        label=gettext_lazy("E-mail address"),
        required=False,
        help_text=gettext_lazy("The link is sent to it."),
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project
        if not invitation_mails.are_sent():
            del self.fields["email"]

    def wish(self) -> InvitationInput:
        """Returns a valid form's answers."""
        return InvitationInput(**self.cleaned_data)

    def show(self, refused: UnusableInvitation | members.UnknownLanguage) -> None:
        """Shows a refusal beside its field."""
        for field, texts in refused.errors.items():
            self.add_error(field if field in self.fields else None, texts[0])


class InvitationListForm(forms.Form):
    """Asks for a list of people, as lines or as a file."""

    lines = forms.CharField(
        label=gettext_lazy("Lines"),
        required=False,
        max_length=LONGEST_LIST,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "placeholder": "name,role,languages,quota"}),
        help_text=gettext_lazy(
            "A person on each line: name,role,languages,quota, or an e-mail address in place of the name. Only the "
            "first value is needed. Write a space between languages."
        ),
    )
    file = forms.FileField(label=gettext_lazy("Or a CSV file of such lines"), required=False)
    days = days_field()

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("file") and data.get("lines", "").strip():
            self.add_error("file", _("Send the lines or a file, not both."))
        elif data.get("file"):
            data["lines"] = self._read(data["file"])
        elif not self.errors and not data.get("lines", "").strip():
            self.add_error("lines", _("Write at least one line, or choose a file."))
        return data

    def _read(self, file: Any) -> str:
        if file.size > LONGEST_LIST:
            self.add_error("file", _("This file is too large for a list of people."))
            return ""
        try:
            return str(file.read().decode("utf-8-sig"))
        except UnicodeDecodeError:
            self.add_error("file", _("This file is not text in UTF-8. Save the table as CSV in UTF-8."))
            return ""


class NewPasswordForm(forms.Form):
    """Asks for a new password, twice."""

    password = forms.CharField(
        label=gettext_lazy("New password"),
        strip=False,
        max_length=1_000,
        help_text=gettext_lazy("At least 10 characters, not only digits, and nothing that many people use."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label=gettext_lazy("Password, once more"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if "again" in data and "password" in data and data["again"] != data["password"]:
            self.add_error("again", _("The two passwords differ."))
        return data


class JoinForm(NewPasswordForm):
    """Asks somebody who has no account for a name and a password."""

    username = forms.CharField(
        label=gettext_lazy("Username"),
        max_length=150,
        help_text=gettext_lazy("Letters, digits and @ . + - _"),
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}),
    )
    field_order = ("username", "password", "again")

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        self.fields["password"].label = gettext_lazy("Password")

    def show(self, refused: members.RefusedName | members.WeakPassword) -> None:
        """Shows a refusal beside its field."""
        self.add_error("password" if isinstance(refused, members.WeakPassword) else "username", str(refused))


class MemberForm(forms.Form):
    """Changes a member's role and limits by the rules that hold at every door."""

    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=Role.choices)
    languages = LanguagesField()
    quota = quota_field()
    tasks_ahead = forms.IntegerField(
        label=gettext_lazy("Tasks ready ahead"),
        required=False,
        min_value=0,
        max_value=MOST_AHEAD,
        help_text=gettext_lazy("Next tasks that their browser holds. Empty: the project's number; 0: none."),
    )
    seen = SeenField()

    def __init__(self, member: Membership, data: Any = None) -> None:
        self.member = member
        self.theirs: list[Theirs] = []
        limits = {name: getattr(member, name) for name in ("languages", "quota", "tasks_ahead")}
        stored = limits | {"role": member.role, "offered_role": member.offered_role}
        shown = limits | {"role": member.offered_role or member.role, FIELD: sealed(stored)}
        super().__init__(data, initial=shown)
        if member.offered_role:
            self.fields["role"].help_text = format_lazy(
                gettext_lazy("The role stays “{role}” until the offer is accepted."), role=member.get_role_display()
            )

    def save(self, *, by: User) -> bool:
        """Makes the change; returns False where it is refused, with the reason beside its field."""
        data = self.cleaned_data
        role = data["role"] if "role" in self.changed_data else None
        try:
            limits = {name: data[name] for name in ("quota", "languages", "tasks_ahead")}
            members.change(self.member, role=role, **limits, by=by, seen=data[FIELD])
        except ChangedMeanwhile as stale:
            shown = [{"offered_role": "role"}.get(name, name) for name in stale.names]
            self.theirs = theirs(self, MemberForm(self.member), ChangedMeanwhile(shown))
            return False
        except members.LastManager as last:
            self.add_error("role", str(last))
        except members.UnknownLanguage as unknown:
            self.add_error("languages", str(unknown))
        except Refusal as refused:
            self.add_error(None, str(refused))
        return not self.errors


class ActionForm(forms.Form):
    """One action, and the members that it is for."""

    action = forms.ChoiceField(choices=[(name, action.label) for name, action in ACTIONS.items()])

    def __init__(self, project: Project, data: Any = None) -> None:
        super().__init__(data)
        self.fields["member"] = forms.ModelMultipleChoiceField(project.memberships.select_related("user", "project"))


class ReasonForm(forms.Form):
    """Asks for the reason, which is kept with the exclusion."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=LONGEST_NOTE,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("It is stored with the exclusion, for managers to read."),
    )
