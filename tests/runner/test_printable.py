from kernel_lab.runner.printable import printable


def test_a_text_that_cannot_be_written_is_spelt_out_and_every_other_stays():
    assert printable("no file b\udcff") == "no file b\\udcff"
    for text in ("", "grüße 😀 \n\t", "a\\udcff"):
        assert printable(text) == text
