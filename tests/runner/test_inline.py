from kernel_lab.runner.inline import InlineWorker


def test_what_is_said_in_this_process_can_be_written_as_what_another_says(tmp_path):
    worker = InlineWorker(tmp_path / "x.log", {})
    worker.channel._worker._say({"say": "records", "traceback": "no \udcff"})
    assert worker.channel.receive() == {"say": "records", "traceback": "no \\udcff"}
