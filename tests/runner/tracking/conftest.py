"""A store for each test; the schema is made once, since it takes seconds."""

import shutil

import pytest
from kernel_lab.runner.tracking.store import connect, locate


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    store = locate(tmp_path_factory.mktemp("template"))
    connect(store)
    return store.database


@pytest.fixture
def store(tmp_path, empty_database, monkeypatch):
    """A local store under this test's outputs; in the working directory nothing may appear."""
    place = tmp_path / "outputs"
    place.mkdir(exist_ok=True)
    shutil.copy(empty_database, place / "mlflow.db")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    yield locate(place)
    assert not list(elsewhere.iterdir()), "a second store or artifacts beside the working directory"


@pytest.fixture
def client(store):
    return connect(store)
