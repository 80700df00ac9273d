"""Artifacts in an object store, as two hosts see them: each has a folder of its own."""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import artifacts, object_store, store, working_copies
from annotator.launch import environment
from annotator.models import StoredFile
from tests.object_store import ObjectStore
from tests.object_store import object_store as server

pytestmark = pytest.mark.django_db(transaction=True)
Host = Callable[[str], Path]


@pytest.fixture(scope="module")
def s3() -> Iterator[ObjectStore]:
    with server() as running:
        yield running


@pytest.fixture
def bucket(s3: ObjectStore, settings: LazySettings) -> str:
    name = f"artifacts-{uuid4().hex}"
    settings.ARTIFACTS_STORE = s3.bucket(name)
    return name


@pytest.fixture
def host(bucket: str, settings: LazySettings, tmp_path: Path) -> Host:
    """Goes to the host of that name; returns the folder `runs/7` there."""

    def there(name: str) -> Path:
        settings.ARTIFACTS = tmp_path / name
        return Path(settings.ARTIFACTS) / "runs" / "7"

    return there


def write(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def read(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def stored(s3: ObjectStore, bucket: str) -> list[str]:
    """The contents in the store, by their hashes."""
    _status, listing = s3.ask("GET", f"/{bucket}?list-type=2&prefix=sha256")
    return [part.split("</Key>")[0].split("/")[-1] for part in listing.decode().split("<Key>")[1:]]


def test_what_one_host_puts_the_other_brings(host: Host) -> None:
    store.put(write(host("one"), model__weights="weights", log="said"))
    folder = host("other")
    assert (store.has(folder), store.has(folder / "model"), store.has(folder / "nothing")) == (True, True, False)
    assert not folder.exists()
    assert read(store.bring(folder)) == {"model/weights": "weights", "log": "said"}
    assert store.places_in("runs") == [folder]


def test_a_part_of_a_folder_can_be_brought(host: Host) -> None:
    store.put(write(host("one"), model__weights="weights", log="said"))
    folder = host("other")
    store.bring(folder / "log")
    assert read(folder) == {"log": "said"}
    assert not store.bring(folder / "nothing").exists()


def test_equal_contents_are_stored_once_until_the_last_place_is_gone(host: Host, s3: ObjectStore, bucket: str) -> None:
    folder = write(host("one"), first="the same", second="the same")
    other = write(folder.with_name("8"), third="the same")
    store.put(folder)
    store.put(other)
    assert len(stored(s3, bucket)) == 1
    store.remove(folder)
    assert (len(stored(s3, bucket)), folder.exists()) == (1, False)
    store.remove(other)
    assert (stored(s3, bucket), StoredFile.objects.count()) == ([], 0)


def test_a_place_that_is_put_again_is_what_it_is_now(host: Host, s3: ObjectStore, bucket: str) -> None:
    folder = host("one")
    store.put(write(folder, kept="1", changed="2", gone="3"))
    elsewhere = store.bring(host("other"))
    folder = host("one")
    (folder / "gone").unlink()
    store.put(write(folder, changed="4", new="5"))
    assert (len(stored(s3, bucket)), store.erase_gone(), len(stored(s3, bucket))) == (5, 2, 3)
    host("other")
    assert read(store.bring(elsewhere)) == {"kept": "1", "changed": "4", "new": "5"}


def test_what_a_host_makes_anew_is_no_copy(host: Host) -> None:
    folder = host("one")
    store.put(write(folder, model="1", texts="2"))
    store.remove(folder / "texts")
    write(folder, texts="3")
    working_copies.tidy()
    assert read(folder) == {"model": "1", "texts": "3"}


def test_what_is_left_out_is_neither_stored_nor_removed(host: Host) -> None:
    folder = host("one")
    store.put(write(folder / "checkpoint", state="half"))
    store.put(write(folder, model="whole", rows__texts="text"), leave=lambda name: name in ("checkpoint", "rows"))
    assert read(store.bring(host("other"))) == {"checkpoint/state": "half", "model": "whole"}


def test_large_files_are_sent_and_read_in_parts(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PART", 1 << 20)
    content = os.urandom(5 << 20) + b"end"
    store.put(write(host("one"), large=content, empty=b""))
    file = host("other") / "large"
    with closing(store.opened(file)) as reader:
        pieces = iter(lambda: reader.read(300_001), b"")
        assert b"".join(pieces) == content
        reader.seek(len(content) - 5)
        assert (reader.read(100), reader.read(100)) == (content[-5:], b"")
    assert (store.size_of(file), store.content_of(file.with_name("empty"))) == (len(content), b"")
    assert not file.exists(), "reading makes no copy"
    assert store.bring(file).read_bytes() == content
    assert store.bring(file.with_name("empty")).read_bytes() == b""
    with pytest.raises(FileNotFoundError):
        store.opened(file.with_name("nothing"))


def test_a_damaged_content_is_never_taken(host: Host, s3: ObjectStore, bucket: str) -> None:
    store.put(write(host("one"), model="weights"))
    (key,) = stored(s3, bucket)
    s3.ask("PUT", f"/{bucket}/sha256/{key[:2]}/{key}", b"WEIGHTS")
    folder = host("other")
    with pytest.raises(store.Damaged, match="runs/7/model"):
        store.bring(folder)
    assert read(folder) == {}


def test_while_the_store_is_away_nothing_changes(
    host: Host, s3: ObjectStore, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    monkeypatch.setattr(object_store, "PATIENCE_SECONDS", 1)
    monkeypatch.setattr(object_store, "RETRIES", 0)
    artifacts.mark_new()
    folder = host("one")
    store.put(write(folder, model="old"))
    with s3.away():
        began = time.monotonic()
        assert "does not answer" in artifacts.problem(artifacts.known_id())
        assert time.monotonic() - began < 5
        with pytest.raises(object_store.StoreAway):
            store.put(write(folder, model="new"))
        with pytest.raises(object_store.StoreAway):
            store.bring(host("other"))
        assert StoredFile.objects.count() == 1
    assert read(store.bring(host("other"))) == {"model": "old"}
    host("one")
    store.put(folder)
    assert read(store.bring(host("other"))) == {"model": "new"}
    assert artifacts.problem(artifacts.known_id()) == ""


def test_what_is_removed_while_the_store_is_away_is_left_until_it_answers(
    host: Host, s3: ObjectStore, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_sha256: str) -> None:
        raise object_store.StoreAway

    folder = write(host("one"), texts="secret")
    store.put(folder)
    with monkeypatch.context() as patched:
        patched.setattr(object_store, "delete", away)
        with pytest.raises(object_store.StoreAway):
            store.remove(folder)
        store.discard(folder)
        assert (folder.exists(), store.has(folder), store.is_left(folder)) == (False, False, True)
        with pytest.raises(object_store.StoreAway):
            store.erase_gone()
    assert len(stored(s3, bucket)) == 1
    store.remove(folder)
    assert (store.is_left(folder), stored(s3, bucket)) == (False, [])


def test_what_is_discarded_is_erased_soon(host: Host, s3: ObjectStore, bucket: str) -> None:
    folder = write(host("one"), texts="secret", kept="kept")
    store.put(folder)
    other = write(folder.with_name("8"), same="kept")
    store.put(other)
    store.discard(folder)
    assert (store.has(folder), store.erase_gone(), len(stored(s3, bucket))) == (False, 2, 1)
    assert read(store.bring(host("other").with_name("8"))) == {"same": "kept"}


def test_what_a_killed_process_has_left_is_erased_after_a_day(host: Host, s3: ObjectStore, bucket: str) -> None:
    host("one")
    object_store.upload(hashlib.sha256(b"secret").hexdigest(), b"secret")
    assert store.erase_orphans(now=database_now()) == 0, "it may be on its way to its row"
    assert store.erase_orphans(now=database_now() + 2 * store.ORPHANED_AFTER) == 1
    assert stored(s3, bucket) == []


def test_what_is_no_longer_ours_is_not_put(host: Host) -> None:
    class Lost(Exception):
        pass

    def lost() -> None:
        raise Lost

    folder = host("one")
    store.put(write(folder, model="theirs"))
    with pytest.raises(Lost):
        store.put(write(folder, model="ours"), require_ours=lost)
    assert read(store.bring(host("other"))) == {"model": "theirs"}


def test_of_a_source_that_is_replaced_meanwhile_the_old_content_is_stored(host: Host) -> None:
    """As a checkpoint is put from links, while the trainer writes the next one in its place."""
    place = host("one") / "checkpoint"
    source = write(place.with_name(".linked"), state="1")

    def trainer_goes_on() -> None:
        write(place, state="2")

    store.put(place, source=source, require_ours=trainer_goes_on)
    assert store.is_newer_here(place)
    assert read(store.bring(place, leave=lambda name: name == "state")) == {"state": "2"}
    assert read(store.bring(place)) == {"state": "1"}
    assert not store.is_newer_here(place)


def test_a_file_that_is_written_to_while_it_is_sent_is_not_stored(
    host: Host, s3: ObjectStore, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(host("one"), log=b"x" * (2 << 20))
    upload = object_store.upload

    def meanwhile(sha256: str, file: Path | bytes) -> None:
        write(folder, log=b"y" * (2 << 20))
        upload(sha256, file)

    monkeypatch.setattr(object_store, "upload", meanwhile)
    with pytest.raises(store.Damaged):
        store.put(folder)
    assert (stored(s3, bucket), store.has(folder)) == ([], False)


def test_one_content_that_cannot_be_deleted_keeps_no_other(
    host: Host, s3: ObjectStore, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = min(hashlib.sha256(content).hexdigest() for content in (b"1", b"2"))
    delete = object_store.delete

    def refused(sha256: str) -> None:
        if sha256 == held:
            raise object_store.StoreAway
        delete(sha256)

    folder = write(host("one"), first="1", second="2")
    store.put(folder)
    monkeypatch.setattr(object_store, "delete", refused)
    with pytest.raises(object_store.StoreAway):
        store.remove(folder)
    assert stored(s3, bucket) == [held]


def test_an_interrupted_copy_is_known(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_sha256: str, **_: int) -> bytes:
        raise object_store.StoreAway

    store.put(write(host("one"), first="1", second="2"))
    folder = host("other")
    part_of = object_store.part_of
    sent: Iterator[Callable[..., bytes]] = iter([part_of, away])
    monkeypatch.setattr(object_store, "part_of", lambda sha256, **place: next(sent)(sha256, **place))
    with pytest.raises(object_store.StoreAway):
        store.bring(folder)
    assert read(folder) == {"first": "1"}
    monkeypatch.setattr(object_store, "part_of", part_of)
    host("one")
    store.remove(folder.parent.parent.parent / "one" / "runs" / "7")
    host("other")
    working_copies.tidy()
    assert not folder.exists()


def test_a_model_in_use_stays_when_its_old_run_goes(host: Host, settings: LazySettings) -> None:
    settings.ARTIFACTS_CACHE_MB = 0
    run = write(host("one"), model__weights="weights", log="said")
    store.put(run)
    os.utime(working_copies.note_of(run), (1, 1))
    store.bring(run / "model")
    working_copies.tidy()
    assert read(run) == {"model/weights": "weights"}


def test_every_host_sweeps_what_it_alone_has(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[str] = []
    monkeypatch.setattr(working_copies, "sweeps", [lambda: 1 / 0, lambda: swept.append("exports")])
    coming = write(host("one"), **{".coming-1": "half", ".coming-2": "half"})
    os.utime(coming / ".coming-1", (1, 1))
    with pytest.raises(ExceptionGroup):
        working_copies.sweep()
    assert (swept, list(read(coming))) == (["exports"], [".coming-2"])


def test_a_transaction_that_is_rolled_back_removes_nothing(host: Host) -> None:
    folder = write(host("one"), texts="kept")
    store.put(folder)
    with transaction.atomic():
        store.remove(folder)
        transaction.set_rollback(True)
    assert read(store.bring(host("other"))) == {"texts": "kept"}


def test_putting_and_removing_equal_contents_at_once_loses_none(host: Host, s3: ObjectStore, bucket: str) -> None:
    """Of eight places with one content each is put and removed again and again, and one of them stays."""
    top = host("one")
    failed: list[BaseException] = []

    def turn(number: int) -> None:
        place = top.with_name(f"{number}")
        try:
            for _ in range(12):
                store.put(write(place, same="content"))
                if number:
                    store.remove(place)
        except BaseException as error:  # noqa: BLE001  the test's thread says what failed
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=turn, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    kept = host("other").with_name("0")
    assert read(store.bring(kept)) == {"same": "content"}
    assert len(stored(s3, bucket)) == 1


def test_copies_of_what_was_erased_go_from_every_host(host: Host) -> None:
    folder = host("one")
    store.put(write(folder, texts="secret", model="weights"))
    elsewhere = store.bring(host("other"))
    write(elsewhere, own="made here")
    host("one")
    store.remove(folder / "texts")
    host("other")
    assert working_copies.tidy() == 1
    assert read(elsewhere) == {"model": "weights", "own": "made here"}
    host("one")
    store.remove(folder)
    host("other")
    working_copies.tidy()
    assert read(elsewhere) == {"own": "made here"}


def test_the_least_used_copies_go_when_there_are_too_many(host: Host, settings: LazySettings) -> None:
    settings.ARTIFACTS_CACHE_MB = 2
    folders = [host("one").with_name(str(number)) for number in range(4)]
    for hours, folder in enumerate(folders):
        store.put(write(folder, large=b"x" * 1_000_000))
        before = time.time() - 10_000 + 100 * hours
        os.utime(working_copies.note_of(folder), (before, before))
    with working_copies.using(folders[0]):
        assert working_copies.tidy() == 2
    assert [folder.exists() for folder in folders] == [True, False, False, True]
    assert len(store.bring(folders[1]).joinpath("large").read_bytes()) == 1_000_000
    settings.ARTIFACTS_CACHE_MB = 0
    assert working_copies.tidy() == 1
    assert [folder.exists() for folder in folders] == [True, True, False, False], "these were used within the hour"


def test_the_mark_says_whose_store_it_is(host: Host, s3: ObjectStore, settings: LazySettings) -> None:
    host("one")
    artifacts.mark_new()
    known = artifacts.known_id()
    assert artifacts.problem(known) == ""
    host("other")
    assert artifacts.problem(known) == "", "every host sees it"
    settings.ARTIFACTS_STORE = s3.bucket(f"other-{uuid4().hex}")
    assert "not this installation's" in artifacts.problem(known)
    call_command("adopt_artifacts")
    assert artifacts.problem(known) == ""


def test_an_installation_moves_to_a_store(host: Host, settings: LazySettings) -> None:
    address, settings.ARTIFACTS_STORE = settings.ARTIFACTS_STORE, ""
    folder = write(host("one"), model="weights")
    snapshot = write(folder.parent.parent / "snapshots" / "project.1" / "abc", rows="rows")
    with pytest.raises(CommandError, match="names no object store"):
        call_command("store_artifacts")
    settings.ARTIFACTS_STORE = address
    artifacts.mark_new()
    for _ in range(2):
        call_command("store_artifacts")
    host("other")
    assert [read(store.bring(host("other"))), StoredFile.objects.count()] == [{"model": "weights"}, 2]
    assert store.has(host("other").parent.parent / "snapshots" / "project.1" / "abc")
    host("one")
    store.remove(snapshot)
    assert not store.has(snapshot)
    with pytest.raises(CommandError, match="There is no"):
        call_command("store_artifacts", "runs/9")


def test_without_a_store_the_folder_is_the_truth(settings: LazySettings, tmp_path: Path) -> None:
    folder = write(Path(settings.ARTIFACTS) / "runs" / "7", model="weights")
    store.put(folder)
    store.forget_here(folder)
    assert (store.has(folder), store.size_of(folder / "model")) == (True, 7)
    assert store.content_of(folder / "model") == b"weights"
    assert store.bring(folder) == folder
    assert store.erase_orphans(now=database_now() + timedelta(days=9)) == store.erase_gone() == 0
    store.discard(folder)
    assert (store.has(folder), StoredFile.objects.count()) == (False, 0)


def test_where_artifacts_are_kept_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usual = tmp_path / "artifacts"
    for written, meant in {
        "": (usual, ""),
        f"file://{tmp_path}/a%20b": (tmp_path / "a b", ""),
        "s3://bucket/below/": (usual, "s3://bucket/below"),
        "az://container": (usual, "az://container"),
    }.items():
        monkeypatch.setenv("ARTIFACTS_URL", written)
        assert environment.artifacts("ARTIFACTS_URL", usual) == meant
    for written in ("ftp://files", "s3://", "file://host/folder", "/folder"):
        monkeypatch.setenv("ARTIFACTS_URL", written)
        with pytest.raises(ImproperlyConfigured, match=r"ARTIFACTS_URL is .*: write file:///FOLDER"):
            environment.artifacts("ARTIFACTS_URL", usual)
