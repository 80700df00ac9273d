"""Downloads go on where they broke off, and end whole or not at all."""

import base64
import hashlib
import io
import tarfile
from pathlib import Path

import httpx
import pytest

from rewardloop import Client, DamagedFile, NotFound, Progress, ServerAway, WorkFailed
from tests.rewardloop.scripted import URL, Answer, BreaksOff, Script, refusal

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()
RELEASE = {"number": 1, "state": "done", "archive_sha256": SHA256}


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewardloop.downloads.backoff", lambda _tries: 0.0)


def client(*answers: Answer, retries: int = 4) -> tuple[Client, Script]:
    script = Script([httpx.Response(200, json=RELEASE), *answers])
    return Client(URL, "secret", retries=retries, transport=httpx.MockTransport(script)), script


def sent(request: httpx.Request, *, tag: str = '"one"', cut: int | None = None) -> httpx.Response:
    """The content as the server sends it, whole or in part; lost behind `cut` bytes of it."""
    asked = request.headers.get("Range") if request.headers.get("If-Range", tag) == tag else None
    start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
    if start >= len(CONTENT):
        return httpx.Response(416)
    digest = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
    headers = {"ETag": tag, "Repr-Digest": f"sha-256=:{digest}:", "Content-Length": str(len(CONTENT) - start)}
    if asked:
        headers["Content-Range"] = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
    rest = CONTENT[start:]
    body = BreaksOff(rest[:cut]) if cut else httpx.ByteStream(rest)
    return httpx.Response(206 if asked else 200, headers=headers, stream=body)


def lost(request: httpx.Request) -> httpx.Response:
    return sent(request, cut=1_000)


def test_a_download_goes_on_where_it_broke_off(tmp_path: Path) -> None:
    asker, script = client(lost, lost, sent)
    heard: list[Progress] = []
    file = asker.download_release("talk", 1, to=tmp_path / "release.tar", on_progress=heard.append)
    assert file.read_bytes() == CONTENT
    assert [request.headers.get("Range") for request in script.requests[1:]] == [None, "bytes=999-", "bytes=1998-"]
    assert script.requests[2].headers["If-Range"] == '"one"'
    assert heard[-1] == Progress("receiving", len(CONTENT), len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["release.tar"]


def test_a_later_process_goes_on_with_it(tmp_path: Path) -> None:
    asker, _ = client(lost, httpx.ReadError("reset"), retries=0)
    with pytest.raises(ServerAway):
        asker.download_release("talk", 1, to=tmp_path / "release.tar")
    assert not (tmp_path / "release.tar").exists()
    asker, script = client(sent)
    assert asker.download_release("talk", 1, to=tmp_path / "release.tar").read_bytes() == CONTENT
    assert script.requests[1].headers["Range"] == "bytes=999-"


def test_what_was_whole_already_is_only_checked(tmp_path: Path) -> None:
    (tmp_path / "release.tar.part").write_bytes(CONTENT)
    (tmp_path / "release.tar.part.etag").write_text('"one"')
    asker, script = client(sent)
    assert asker.download_release("talk", 1, to=tmp_path / "release.tar").read_bytes() == CONTENT
    assert script.requests[1].headers["Range"] == f"bytes={len(CONTENT) - 1}-"


def test_a_part_of_another_content_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "release.tar.part").write_bytes(b"another" * 100)
    (tmp_path / "release.tar.part.etag").write_text('"two"')
    asker, _ = client(sent)
    assert asker.download_release("talk", 1, to=tmp_path / "release.tar").read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_file_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "release.tar.part").write_bytes(CONTENT * 2)
    (tmp_path / "release.tar.part.etag").write_text('"one"')
    asker, _ = client(sent, sent)
    assert asker.download_release("talk", 1, to=tmp_path / "release.tar").read_bytes() == CONTENT


def test_a_damaged_file_never_takes_its_place(tmp_path: Path) -> None:
    asker, _ = client(httpx.Response(200, content=b"x" + CONTENT[1:], headers={"ETag": '"one"'}))
    with pytest.raises(DamagedFile, match="SHA-256"):
        asker.download_release("talk", 1, to=tmp_path / "release.tar")
    assert list(tmp_path.iterdir()) == []


def test_the_last_download_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    (tmp_path / "release.tar").write_bytes(b"old")
    asker, _ = client(refusal(404))
    with pytest.raises(NotFound):
        asker.download_release("talk", 1, to=tmp_path / "release.tar")
    assert (tmp_path / "release.tar").read_bytes() == b"old"


def test_a_release_that_is_not_done_is_not_downloaded(tmp_path: Path) -> None:
    script = Script([httpx.Response(200, json={"number": 1, "state": "withdrawn", "error": "A text was erased."})])
    asker = Client(URL, "secret", transport=httpx.MockTransport(script))
    with pytest.raises(WorkFailed, match="A text was erased"):
        asker.download_release("talk", 1, to=tmp_path / "release.tar")


# Models ------------------------------------------------------------------------------------------------------
def archive(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"talk-reward-model-1/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def model_client(packed: bytes) -> Client:
    listed = [{"path": "weights", "size": 4, "sha256": hashlib.sha256(b"good").hexdigest()}]
    script = Script([httpx.Response(200, json=listed), httpx.Response(200, content=packed, headers={"ETag": '"m"'})])
    return Client(URL, "secret", transport=httpx.MockTransport(script))


def test_each_file_of_a_model_is_compared_with_the_list(tmp_path: Path) -> None:
    to = tmp_path / "model.tar"
    assert model_client(archive(weights=b"good")).download_model(1, to) == to
    with pytest.raises(DamagedFile, match="weights"):
        model_client(archive(weights=b"evil")).download_model(1, to)
    assert not to.exists()
    with pytest.raises(DamagedFile, match="no whole tar file"):
        model_client(b"no tar" * 200).download_model(1, to)
