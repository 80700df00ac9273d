"""What must not leave with a release: marks of redactions, secrets, and paths of this server."""

from pathlib import Path

import pytest
from django.conf import LazySettings

from annotator.models import Annotation, Project, Response, Rubric, Task
from annotator.models.rubric import attributes_by_version
from annotator.outputs.releases.checks import PATHS, REDACTED, SECRETS, Checker
from annotator.outputs.releases.particulars import Particulars, UnusableParticulars
from tests.annotator.outputs.releases.conftest import Made

pytestmark = pytest.mark.django_db(transaction=True)
AWS = "AKIA" + "IOSFODNN7EXAMPLE"  # in two parts, as scanners of sources look for the whole


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("Write to [e-mail address removed], please.", REDACTED),
        ("My name is [REDACTED].", REDACTED),
        ("Call <redacted: phone> now.", REDACTED),
        (f"aws configure set {AWS}", SECRETS),
        ("-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE", SECRETS),
        ("export OPENAI_API_KEY=sk-" + "proj-4f8Kq2LmZ0x9Yt7Rb1", SECRETS),
        ("token: hf_" + "abcdefghijABCDEFGHIJabcdefghijABCD", SECRETS),
        ("git clone with ghp_" + "0123456789abcdefghij0123456789abcdef", SECRETS),
        ("postgresql://app:" + "s3cretword@db.example.org/data", SECRETS),
        ("Traceback in /home/ola/app/main.py", PATHS),
        (r"Saved to C:\Users\Ola\notes.txt", PATHS),
        ("It lies in /root/keys/a.pem", PATHS),
    ],
)
def test_it_finds(text: str, check: str) -> None:
    (finding,) = Checker().findings({"response": text})
    assert (finding.check, finding.field) == (check, "response")
    assert text not in str(finding)


@pytest.mark.parametrize(
    "text",
    [
        "Names were redacted (see above).",
        "Use sk-learn-style estimators, or sk-something-without-digits.",
        "The homepage is https://example.org/home/ola/x, and /usr/bin/env runs it.",
        "Read /etc/hosts, /tmp/x and src/home/index.html.",
        "A list [removed] and [item removed] of things.",
        "postgresql://localhost/data and mailto:a@example.org",
    ],
)
def test_it_leaves_alone(text: str) -> None:
    assert list(Checker().findings(text)) == []


def test_it_knows_this_installation_s_own_secrets_and_folders(settings: LazySettings, tmp_path: Path) -> None:
    settings.SECRET_KEY, settings.HF_TOKEN, settings.ARTIFACTS = "correct-horse", "battery-staple", tmp_path / "a"
    for text in ("it is correct-horse.", "or battery-staple", f"open {tmp_path}/a/releases/1"):
        assert len(list(Checker().findings(text))) == 1, text
    assert list(Checker().findings(f"{tmp_path}/about")) == []


def test_it_looks_into_lists_and_objects() -> None:
    row = {"votes": [{"reason": "fine"}, {"reason": f"key {AWS}"}], "strength": 2, "nothing": None}
    (finding,) = Checker().findings(row)
    assert str(finding) == "votes.reason: an AWS access key"


@pytest.fixture
def leaking(rated: list[Task]) -> Task:
    Response.objects.filter(task=rated[2], position=1).update(text=f"The key is {AWS}.")
    return rated[2]


@pytest.mark.usefixtures("leaking")
def test_a_secret_refuses_the_release_and_names_the_task(made: Made) -> None:
    release = made()
    assert release.state == "failed"
    assert "t-2 (response: an AWS access key)" in release.error
    assert "make the release without it" in release.error
    assert AWS not in release.error
    assert not release.folder().exists()
    assert not release.unfinished_folder().exists()


def test_a_task_that_fails_can_be_left_out_of_every_configuration(leaking: Task, made: Made) -> None:
    release = made(leave_out_failing=True)
    assert (release.state, release.counts["tasks"], release.counts["left_out"]) == ("done", 5, 1)
    files = b"".join(path.read_bytes() for path in release.folder().rglob("*") if path.is_file())
    assert b"What is t-2?" not in files
    assert not release.frozen.filter(task_id=leaking.pk).exists()
    assert "left out because a text failed a check: 1." in (release.folder() / "README.md").read_text()


def test_a_path_in_a_justification_counts_too(rated: list[Task], made: Made) -> None:
    Annotation.objects.filter(assignment__task=rated[1]).update(justification="As in /home/ola/notes/x.txt")
    error = made().error
    assert "t-1 (preference_elaboration: a path in a home folder)" in error


def test_a_redacted_task_is_named(rated: list[Task], made: Made) -> None:
    Response.objects.filter(task=rated[0], position=0).update(text="Call [phone number removed].")
    Response.objects.filter(task=rated[1], position=0).update(text="Call [phone number removed].")
    error = made().error
    assert error.startswith("2 tasks hold text that must not be published: t-0 (response: the mark of a redaction)")


def test_the_card_is_checked_as_well(rated: list[Task], made: Made) -> None:
    Rubric.objects.get(key="helpsteer2").attributes.filter(key="coherence").update(description=f"Not {AWS}")
    attributes_by_version.cache_clear()
    error = made(leave_out_failing=True).error
    assert error.startswith("The file README.md would contain an AWS access key")


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("license", {"license": "mine"}),
        ("license_text", {"license": "other"}),
        ("title", {"title": 121 * "a"}),
        ("notes", {"notes": f"Made with {AWS}"}),
        ("limits", {"limits": "See /home/ola/limits/all.txt"}),
    ],
)
def test_what_a_manager_writes_is_refused_at_once(
    project: Project, field: str, given: dict[str, str], made: Made
) -> None:
    with pytest.raises(UnusableParticulars) as refused:
        Particulars(**given).require_usable()  # type: ignore[arg-type]
    assert list(refused.value.errors) == [field]
    with pytest.raises(UnusableParticulars):
        made(**given)
    assert not project.releases.exists()
