"""A recorded run of a notebook: everything it names is a cell and a line in it."""

from recordings import diagnosis_of, run_of, tables_of

from traceview.diagnosis.excerpts import source_reader
from traceview.reports import markdown, terminal
from traceview.words.names import at_line

NAME = "notebooks-graph_break"
BREAK, SOURCE = 8, "if h.sum().item() > 1e9:"


def test_the_break_is_a_cell_and_a_line():
    diagnosis = diagnosis_of(NAME)
    (found,) = [f for f in diagnosis.findings if f.rule == "gb-item"]
    assert found.location.file.endswith("/graph_break.ipynb cell 2")
    assert (found.location.line, found.location.function) == (BREAK, "forward")
    assert "graph_break.ipynb, cell 2, line 8" in found.title
    (excerpt,) = [e for e in diagnosis.excerpts if (e.file, e.line) == (found.location.file, BREAK)]
    assert dict(excerpt.lines)[BREAK].strip() == SOURCE


def test_every_report_writes_cell_and_line():
    diagnosis = diagnosis_of(NAME)
    for text in (terminal.render(diagnosis, 200, color=False), markdown.render(diagnosis)):
        assert "graph_break.ipynb, cell 2, line 8" in text.replace("\\_", "_")
        assert "cell 2:8" not in text


def test_kernels_lead_to_lines_of_the_cell():
    groups = tables_of(NAME)["kernel_groups"]["user_lines"].drop_nulls()
    lines = {line for row in groups for line in row}
    assert {line.rsplit("/", 1)[-1] for line in lines} == {
        f"graph_break.ipynb cell 2:{number}" for number in (7, 8, 10)
    }


def test_all_cells_are_kept():
    read = source_reader(run_of(NAME), tables_of(NAME))
    files = sorted(tables_of(NAME)["sources"]["file"])
    assert [file[-6:] for file in files] == [f"cell {n}" for n in range(1, 6)]
    assert "with torch.no_grad():" in read(files[3])


def test_the_manifest_says_what_is_left_out():
    (note,) = [n for n in run_of(NAME).manifest.notes if "Left out" in n]
    assert note.endswith("%matplotlib inline; !pip --version")


def test_how_a_line_is_written():
    assert at_line("train.py", 41) == "train.py:41"
    assert at_line("train.py", 41, 42) == "train.py:41, 42"
    assert at_line("a/nb.ipynb cell 4", 7) == "a/nb.ipynb, cell 4, line 7"
    assert at_line("nb.ipynb cell 4", 7, 9) == "nb.ipynb, cell 4, lines 7, 9"
