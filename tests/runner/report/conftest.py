"""Pictures looked at before they are files."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def drawing(monkeypatch, tmp_path):
    """Draws a job by a writer of pictures; the axes of each by file name."""

    def draw(write, job):
        axes = {}
        save = Figure.savefig

        def kept(figure, path, **kwargs):
            axes[Path(path).name] = figure.axes[0]
            save(figure, path, **kwargs)

        monkeypatch.setattr(Figure, "savefig", kept)
        paths = write(job, tmp_path / "plots")
        assert [path.name for path in paths] == list(axes)
        for path in paths:
            assert path.read_bytes().startswith(b"\x89PNG")
        return axes

    return draw
