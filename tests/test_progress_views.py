"""Views of progress: the line fits its terminal, a log is quiet, a notebook has a widget or an output of its own."""

from __future__ import annotations

import io
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from outcore._session import views
from outcore._session.figures import Figures, LoopFigures
from outcore._session.line import clock, line, loop_text, printable, summary, text_width
from outcore._session.progress import Progress

GIB = 1 << 30
WIDTHS = [1, 5, 12, 20, 40, 80, 100, 200]


def storing() -> Figures:
    """A program in its second stage, a quarter of an hour from its end."""
    figures = Figures("store", memory_limit=GIB, stage="stage 2 of 4: sort 3 runs")
    figures.tasks_done, figures.tasks_total = 4, 40
    figures.sample(10.0)
    figures.report(3 * GIB, 4 * GIB, 0.1, 900.0, 100.0)
    figures.memory = 500 << 20
    return figures


def nested() -> Figures:
    """A fit within a loop."""
    outer = LoopFigures("", 0.0, most=50, values={"loss": 0.123456, "grad_norm": 12.0})
    inner = LoopFigures("KMeans.fit", 10.0, most=10, unit="iteration", values={"inertia": 12345.678}, is_bound=True)
    for step in range(3):
        outer.show(step + 1, step, 10.0 * step)
    inner.show(2, 2, 23.0)
    figures = Figures("iterate", loops=[outer, inner], memory_limit=GIB)
    figures.memory = 500 << 20
    return figures


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_a_line_is_never_wider_than_its_terminal(width: int, encoding: str) -> None:
    for figures, now in ((storing(), 100.0), (nested(), 25.0), (Figures(), 0.0)):
        for ending in ("", "interrupted at 10 %"):
            for text in (
                line(figures, now, width, encoding),
                summary(figures, now, ending, width, encoding),
            ):
                assert text_width(text) <= width
                assert text.encode(encoding).decode(encoding).isprintable()


def test_a_wide_line_has_all_that_is_known() -> None:
    assert line(storing(), 100.0, 200) == (
        "store  stage 2 of 4: sort 3 runs  ━━──────────────────  10 %  3.00 of 4.00 GiB  4 of 40 tasks  34.1 MiB/s  "
        "memory 500.0 MiB of 1.00 GiB  15:00 left"
    )


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (100, "store  stage 2 of 4: sort 3 runs  10 %  3.00 of 4.00 GiB  34.1 MiB/s  500.0 MiB  15:00 left"),
        (80, "store  stage 2 of 4: sort 3 runs  10 %  3.00 of 4.00 GiB  34.1 MiB/s  15:00 left"),
        (60, "store  stage 2 of 4  10 %  3.00 of 4.00 GiB  15:00 left"),
        (40, "store  10 %  3.00 of 4.00 GiB  15:00"),
        (20, "store  10 %  15:00"),
    ],
)
def test_the_least_important_parts_are_left_out_first(width: int, text: str) -> None:
    assert line(storing(), 100.0, width) == text


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (
            200,
            "iterate  step 3 of 50, loss 0.123456, grad norm 12 › KMeans.fit iteration 2 of 10, inertia 12345.7  "
            "━───────────────────  5 %  memory 500.0 MiB of 1.00 GiB  7:55 left",
        ),
        (100, "iterate  step 3 of 50 › KMeans.fit iteration 2 of 10, inertia 12345.7  5 %  500.0 MiB  7:55 left"),
        (80, "iterate  step 3 of 50 › KMeans.fit iteration 2 of 10  5 %  500.0 MiB  7:55 left"),
        (60, "iterate  3/50 › KMeans.fit 2/10  5 %  500.0 MiB  7:55 left"),
        (40, "iterate  3/50 › 2/10  5 %  7:55 left"),
    ],
)
def test_loops_within_loops_are_both_in_the_line(width: int, text: str) -> None:
    assert line(nested(), 25.0, width) == text


def test_a_loop_that_may_end_sooner_has_a_bound() -> None:
    loop = LoopFigures("", 0.0, most=20, is_bound=True)
    for step in range(1, 4):
        loop.show(step, step, 2.0 * step)
    assert line(Figures("gmres", loops=[loop]), 6.0, 80).endswith("at most 0:34 left")


def test_the_rest_of_a_fit_of_unknown_length_is_that_of_its_program() -> None:
    figures = Figures("PCA.fit", loops=[LoopFigures("", 0.0)])
    figures.tasks_done, figures.tasks_total = 1, 4
    figures.report(1, 4, 0.25, 3.0, 1.0)
    assert line(figures, 1.0, 60) == "PCA.fit  25 %  1 of 4 B  0:03 left of this program"


def test_a_terminal_without_unicode_gets_ascii() -> None:
    text = line(nested(), 25.0, 200, "ascii")
    assert "step 3 of 50, loss 0.123456, grad norm 12 > KMeans.fit" in text
    assert "=-------------------" in text


def test_names_of_users_bring_no_control_characters() -> None:
    figures = Figures("iterate", loops=[LoopFigures("", 0.0, most=2, step=1, values={"a\x1b[2J\n损失": 1.0})])
    assert line(figures, 0.0, 80).startswith("iterate  step 1 of 2, a?[2J?损失 1")
    assert "损" not in line(figures, 0.0, 80, "ascii")
    for width in WIDTHS:
        assert text_width(line(figures, 0.0, width)) <= width


def test_letters_of_two_cells_count_twice() -> None:
    assert text_width("损失") == 4
    assert text_width("e\u0301") == 1
    assert printable("›", "ascii") == ">"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (0.2, "0:01"), (59.5, "1:00"), (3600, "1:00:00"), (171, "2:51")]
)
def test_a_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_loop_before_its_first_step_begins() -> None:
    assert loop_text(LoopFigures("KMeans.fit", 0.0)) == "KMeans.fit begins"


# Logs


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def log_of(seconds: float, error: BaseException | None = None) -> list[str]:
    """Lines of the log of a program of so many seconds that reports each second."""
    log, now = io.StringIO(), Clock()
    progress = Progress("store", GIB, view=lambda: views.LogView(log), clock=now)
    progress.begin_program()
    while now.now < seconds:
        now.now += 1
        share = now.now / seconds
        progress.report(int(share * GIB), GIB, 1, 2, share, seconds - now.now)
    progress.close(error)
    return log.getvalue().splitlines()


def test_a_log_has_a_line_a_minute_and_one_at_the_end() -> None:
    lines = log_of(330)
    assert len(lines) == 6
    assert [text.partition(" left")[0].rpartition(" ")[2] for text in lines[:5]] == [
        "4:30",
        "3:30",
        "2:30",
        "1:30",
        "0:30",
    ]
    assert lines[5].startswith("store  1.00 GiB, 3.10 MiB/s")
    assert lines[5].endswith("in 5:30")


def test_a_log_of_a_short_call_is_its_last_line() -> None:
    assert len(log_of(20)) == 1


def test_a_log_has_no_control_characters() -> None:
    assert all(text.isprintable() for text in log_of(200))


@pytest.mark.parametrize(
    ("error", "text"), [(KeyboardInterrupt(), "interrupted at 100 %"), (ValueError(), "failed at 100 %")]
)
def test_the_last_line_says_how_a_call_ended(error: BaseException, text: str) -> None:
    assert text in log_of(20, error)[-1]


def test_a_log_of_another_encoding_is_written_in_it() -> None:
    raw = io.BytesIO()
    log = io.TextIOWrapper(raw, encoding="ascii")
    view = views.LogView(log)
    view.update(nested(), 100.0)
    view.close(nested(), 100.0, "")
    assert len(raw.getvalue().decode("ascii").splitlines()) == 2


# Terminals


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def test_a_terminal_shows_one_line_that_is_rewritten(terminal: Terminal) -> None:
    view = views.TerminalView(terminal)
    for now in (100.0, 101.0, 102.0):
        view.update(storing(), now)
    view.close(storing(), 103.0, "")
    text = terminal.getvalue()
    assert text.count("\n") == 1, "the line at the end alone ends"
    assert "store  stage 2 of 4: sort 3 runs  10 %  3.00 of 4.00 GiB  500.0 MiB  15:00 left" in text
    assert text.rindex("in 1:43") > text.rindex("14:58 left")


def test_a_second_call_waits_for_the_line_of_the_first(terminal: Terminal) -> None:
    first, second = views.TerminalView(terminal), views.TerminalView(other := Terminal())
    first.update(storing(), 100.0)
    in_thread = threading.Thread(target=second.update, args=(nested(), 25.0))
    in_thread.start()
    in_thread.join()
    assert other.getvalue() == ""
    first.close(storing(), 101.0, "")
    second.update(nested(), 26.0)
    second.close(nested(), 27.0, "")
    assert "KMeans.fit" in other.getvalue()


def test_prints_into_a_file_stay_there(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    view = views.TerminalView(terminal)
    view.update(storing(), 100.0)
    print("loss 3")
    view.close(storing(), 101.0, "")
    assert out.getvalue() == "loss 3\n"
    assert "loss 3" not in terminal.getvalue()


# Notebooks


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Modules that stand for those of a notebook, and the list of what they displayed."""
    displayed: list[Any] = []

    class Handle:
        def update(self, content: object, **_: object) -> None:
            displayed.append(content)

    def display(content: object, **options: object) -> object:
        displayed.append(content)
        return Handle() if options.get("display_id") else None

    class ZMQInteractiveShell:
        pass

    shell, output = ModuleType("IPython"), ModuleType("IPython.display")
    shell.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    output.display = display  # type: ignore[attr-defined]
    widgets = ModuleType("ipywidgets")
    widgets.FloatProgress = SimpleNamespace  # type: ignore[attr-defined]
    widgets.HTML = SimpleNamespace  # type: ignore[attr-defined]
    widgets.VBox = list  # type: ignore[attr-defined]
    for module in (shell, output, widgets):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return displayed


def test_a_notebook_has_a_widget(notebook: list[Any]) -> None:
    view = views.chosen()
    assert isinstance(view, views.WidgetView)
    ((bar, text),) = notebook
    view.update(nested(), 25.0)
    assert 0 < bar.value < 1
    for part in ("iterate", "step 3 of 50, loss 0.123456", "KMeans.fit iteration 2 of 10", "memory 500.0 MiB"):
        assert part in text.value
    view.close(nested(), 26.0, "")
    assert (bar.value, bar.bar_style) == (1.0, "success")
    assert len(notebook) == 1


def test_a_widget_of_an_interrupted_call_stays_where_it_was(notebook: list[Any]) -> None:
    view = views.WidgetView()
    ((bar, text),) = notebook
    view.update(nested(), 25.0)
    view.close(nested(), 26.0, "interrupted at 5 %")
    assert bar.value < 1
    assert bar.bar_style == "danger"
    assert "interrupted at 5 %" in text.value


def test_a_widget_of_ipywidgets_itself_shows_the_figures() -> None:
    ipywidgets = pytest.importorskip("ipywidgets", reason="the extra `notebook` is not installed")
    view = views.WidgetView()
    view.update(storing(), 100.0)
    view.close(storing(), 101.0, "")
    assert isinstance(view._bar, ipywidgets.FloatProgress)
    assert "in 1:41" in view._text.value


def test_a_notebook_without_widgets_has_an_output_that_is_replaced(
    notebook: list[Any], monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    view = views.chosen()
    assert isinstance(view, views.DisplayView)
    view.update(nested(), 25.0)
    view.close(nested(), 26.0, "")
    first, last = notebook
    assert first["text/plain"].splitlines()[1] == "step 3 of 50, loss 0.123456, grad norm 12"
    assert "in 0:26" in last["text/html"]
    assert list(recwarn) == []


def test_names_of_users_are_text_in_a_notebook(notebook: list[Any]) -> None:
    figures = Figures("iterate", loops=[LoopFigures("", 0.0, most=2, step=1, values={"<b>": 1.0})])
    view = views.DisplayView()
    view.update(figures, 0.0)
    assert "<b>" not in notebook[0]["text/html"]
    assert "&lt;b&gt;" in notebook[0]["text/html"]


def test_a_pipe_gets_the_lines_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(views.chosen(), views.LogView)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(views.chosen(), views.TerminalView)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(views.chosen(), views.LogView)


class HungUp(io.StringIO):
    """A file whose terminal is gone after some writes."""

    def __init__(self, writes: int = 0, error: Exception | None = None) -> None:
        super().__init__()
        self.writes, self.error = writes, error or OSError(5, "Input/output error")

    def write(self, text: str) -> int:
        if self.writes <= 0:
            raise self.error
        self.writes -= 1
        return super().write(text)

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("writes", [0, 1, 3])
@pytest.mark.parametrize("view", [views.TerminalView, views.LogView])
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("I/O operation on closed file")])
def test_a_call_goes_on_where_its_line_cannot_be_written(
    writes: int, view: type[views.TerminalView | views.LogView], error: Exception
) -> None:
    file, now = HungUp(writes, error), Clock()
    progress = Progress("store", GIB, view=lambda: view(file), clock=now)
    progress.begin_program()
    for step in range(1, 5):
        now.now += 61
        progress.report(step, 4, step, 4, step / 4, 1.0)
    progress.close(KeyboardInterrupt())
    assert views._terminal.acquire(blocking=False)
    views._terminal.release()
    assert not type(sys.stdout).__module__.startswith("rich")
