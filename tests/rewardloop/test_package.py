"""The client is whole without the server."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from django.conf import settings as django_settings

import rewardloop
from rewardloop import Client

ROOT = Path(django_settings.BASE_DIR)
SERVER = ("django", "celery", "annotator", "rewards", "rest_framework", "numpy", "pyarrow", "orjson", "psycopg")


def test_every_method_says_what_it_does() -> None:
    methods = {name: value for name, value in vars(Client).items() if not name.startswith("_")}
    assert [name for name, method in methods.items() if not method.__doc__] == []


def test_every_public_name_is_there() -> None:
    assert [name for name in rewardloop.__all__ if not hasattr(rewardloop, name)] == []


def test_it_imports_nothing_of_the_servers() -> None:
    code = f"""
import pkgutil, sys
for name in {SERVER}: sys.modules[name] = None
import rewardloop
for module in pkgutil.walk_packages(rewardloop.__path__, 'rewardloop.'):
    if not module.name.endswith('__main__'): __import__(module.name)
print('fine')
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "fine", done.stderr


def uv(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("uv")), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_wheel_without_extras_is_the_client(tmp_path: Path) -> None:
    if (built := uv("build", "--wheel", "--out-dir", str(tmp_path), ".")).returncode:
        pytest.skip(f"the wheel's builder is out of reach: {built.stderr[-200:]}")
    (wheel,) = tmp_path.glob("*.whl")
    files = {"rewardloop/py.typed", "annotator/shipped/locale/de/LC_MESSAGES/django.mo"}
    assert files <= set(zipfile.ZipFile(wheel).namelist())
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    if (installed := uv("pip", "install", "--quiet", "--python", str(python), str(wheel))).returncode:
        pytest.skip(f"the package index is out of reach: {installed.stderr[-200:]}")
    environment = {"PATH": os.defpath, "HOME": str(tmp_path)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        program = [str(python.with_name(words[0])), *words[1:]]
        return subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    missing = run("python", "-c", "import django")
    assert "ModuleNotFoundError" in missing.stderr
    assert run("python", "-c", "import rewardloop; rewardloop.Client('http://x').close()").returncode == 0
    assert run("rewardloop", "--version").stdout == f"rewardloop {rewardloop.VERSION}\n"
    served = run("rewardloop", "serve")
    assert (served.returncode, 'pip install "rewardloop[server]"' in served.stderr) == (1, True)
    listed = run("rewardloop", "projects", "list")
    assert (listed.returncode, "rewardloop login URL" in listed.stderr) == (1, True)


TABLES = """
import httpx, rewardloop
rows = b'{"prompt": "a", "why": null}\\n{"prompt": "b", "why": "x"}\\n'
answer = lambda request: httpx.Response(200, content=rows)
with rewardloop.Client("https://rate.example", "t", transport=httpx.MockTransport(answer)) as client:
    print(client.to_pandas("talk")["prompt"].tolist(), client.to_datasets("talk")["why"][:])
"""


@pytest.mark.slow
@pytest.mark.skipif("DATASETS" not in os.environ, reason="DATASETS=1 installs pandas and datasets and tries them")
def test_rows_become_tables_of_pandas_and_datasets(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    installed = uv("pip", "install", "--quiet", "--python", python, ".", "pandas", "datasets")
    assert installed.returncode == 0, installed.stderr
    environment = {"PATH": os.defpath, "HOME": str(tmp_path)}
    done = subprocess.run(
        [python, "-c", TABLES], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "['a', 'b'] [None, 'x']", done.stderr
