import math
import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path

import pytest
from kernel_lab.runner import channel
from kernel_lab.runner.channel import Channel, Listener, connect
from kernel_lab.runner.errors import WorkerError


@pytest.fixture
def pair():
    """Two raw ends of one line."""
    one, other = socket.socketpair()
    yield one, other
    one.close()
    other.close()


def test_messages_pass_in_order_both_ways():
    with Listener() as listener:
        worker = connect(listener.path)
        supervisor = listener.accept()
        for k in range(3):
            worker.send({"say": "step", "k": k})
        assert [supervisor.receive()["k"] for _ in range(3)] == [0, 1, 2]
        supervisor.send({"do": "stop"})
        assert worker.receive() == {"do": "stop"}
        worker.close()
        assert supervisor.receive() is None
        supervisor.close()


def test_two_messages_in_one_read_are_two(pair):
    raw, other = pair
    raw.sendall(b'{"k": 1}\n{"k": 2}\n{"k"')
    channel = Channel(other)
    assert channel.receive() == {"k": 1}
    assert channel.waiting
    assert channel.receive() == {"k": 2}
    assert not channel.waiting
    raw.sendall(b": 3}\n")
    assert channel.receive() == {"k": 3}


def test_a_message_in_pieces_is_one(pair):
    raw, other = pair
    text = '{"text": "grüße\\n"}\n'.encode()

    def dribble():
        for k in range(len(text)):
            raw.sendall(text[k : k + 1])

    thread = threading.Thread(target=dribble)
    thread.start()
    assert Channel(other).receive() == {"text": "grüße\n"}
    thread.join()


def test_twenty_megabytes_pass(pair):
    raw, other = pair
    message = {"samples": "x" * (20 << 20)}
    thread = threading.Thread(target=Channel(raw).send, args=(message,))
    thread.start()
    assert Channel(other).receive() == message
    thread.join()


def test_a_message_cut_short_by_a_death_is_none(pair):
    raw, other = pair
    raw.sendall(b'{"say": "rec')
    raw.close()
    assert Channel(other).receive() is None


def test_sending_to_nobody_raises(pair):
    raw, other = pair
    raw.close()
    with pytest.raises(BrokenPipeError):
        Channel(other).send({"say": "x" * 10_000_000})


def test_what_is_no_json_is_never_sent(pair):
    raw, _ = pair
    with pytest.raises(ValueError, match="JSON"):
        Channel(raw).send({"value": math.nan})


def test_a_text_that_no_file_takes_is_spelt_out_on_the_way(pair):
    """A traceback may hold a file name that is no UTF-8; records, reports and stores are."""
    raw, other = pair
    Channel(raw).send({"traceback": "no \udcff", "fine": "grüße 😀 \\udcff \ud83d\ude00"})
    said = Channel(other).receive()
    assert said == {"traceback": "no \\udcff", "fine": "grüße 😀 \\udcff \\ud83d\\ude00"}
    str(said).encode()


def test_the_path_is_short_wherever_outputs_lie_and_goes_with_the_listener():
    with Listener() as listener:
        path = Path(listener.path)
        assert len(listener.path) < 100
        assert path.exists()
        assert not os.get_inheritable(listener.fileno())
        assert path.parent.stat().st_mode & 0o077 == 0
    assert not path.parent.exists()


@pytest.fixture
def temporary(monkeypatch):
    """Sets TMPDIR to a folder whose name fills the path to so many bytes."""
    base = Path(tempfile.mkdtemp(dir="/tmp"))

    def make(size):
        folder = base / ("x" * (size - len(os.fsencode(base)) - 1))
        folder.mkdir()
        assert len(os.fsencode(folder)) == size
        monkeypatch.setenv("TMPDIR", str(folder))
        monkeypatch.setattr(tempfile, "tempdir", None)
        return folder

    yield make
    shutil.rmtree(base)


@pytest.mark.parametrize(("size", "there"), [(91, True), (92, False), (180, False)])
def test_a_temporary_folder_with_a_long_path_is_passed_over(temporary, size, there):
    """A socket's path may hold 107 bytes, of which a folder's own name takes 16."""
    folder = temporary(size)
    with Listener() as listener:
        assert (folder in Path(listener.path).parents) is there
        worker = connect(listener.path)
        listener.accept().close()
        worker.close()


def test_where_no_short_folder_can_be_written_that_is_said(temporary, monkeypatch, tmp_path):
    folder = temporary(180)
    monkeypatch.setattr(channel, "SHORT_FOLDERS", (str(tmp_path / "nowhere"),))
    with pytest.raises(WorkerError, match=rf"107 bytes: {folder}, .*nowhere.*TMPDIR"):
        Listener()
