"""The command line up to where torch is needed."""

import pytest

from memviz.cli import main


def test_help_names_the_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "demo" in capsys.readouterr().out


def test_an_unknown_command_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["dmeo"])
    assert ended.value.code == 2
    assert "demo" in capsys.readouterr().err
