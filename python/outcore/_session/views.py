"""Views of progress: a line on a terminal, a widget of a notebook, lines of a log."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from outcore._session import line as _line
from outcore._session.figures import Figures

if TYPE_CHECKING:
    from rich.live import Live

# Terminals keep their last column free: some go on to the next line when it is written to.
_MARGIN = 1
_LOG_SECONDS = 60.0
# One line per terminal: of runs in several threads, those that came later are not shown until it is free.
_terminal = threading.Lock()


class View(Protocol):
    """Shows figures."""

    def update(self, figures: Figures, now: float) -> None:
        """Shows how far the call is."""

    def close(self, figures: Figures, now: float, ending: str) -> None:
        """Shows what became of it."""


class TerminalView:
    """One line at the bottom of a terminal, which prints of the program come above of."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file
        self._live: Live | None = None

    def _opened(self) -> Live | None:
        """The line; none while that of another thread is there."""
        if self._live is None and _terminal.acquire(blocking=False):
            try:
                self._live = self._new()
                self._live.start()
            except BaseException:
                self._leave()
                raise
        return self._live

    def _new(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        return Live(
            console=Console(file=self._file, stderr=self._file is None),
            auto_refresh=False,
            vertical_overflow="crop",
            # Text for a file or a pipe must not come to the terminal.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
            redirect_stderr=sys.stderr is not None and sys.stderr.isatty(),
        )

    def _leave(self) -> None:
        """Ends the line, and frees the terminal for others."""
        live, self._live = self._live, None
        try:
            if live is not None:
                live.stop()
        finally:
            _terminal.release()

    def update(self, figures: Figures, now: float) -> None:
        live = self._opened()
        if live is not None:
            _rewrite(live, _line.line(figures, now, *_room(live)))

    def close(self, figures: Figures, now: float, ending: str) -> None:
        live = self._opened()
        if live is None:
            return
        try:
            _rewrite(live, _line.summary(figures, now, ending, *_room(live)))
        finally:
            self._leave()


def _room(live: Live) -> tuple[int, str]:
    """Cells that a line may take, and the encoding of its letters."""
    return max(live.console.width - _MARGIN, 1), live.console.encoding


def _rewrite(live: Live, text: str) -> None:
    from rich.text import Text

    live.update(Text(text, no_wrap=True, overflow="crop", end=""), refresh=True)


class LogView:
    """Plain lines without control characters: one a minute, and one at the end."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file
        self._last: float | None = None

    def _write(self, text: str) -> None:
        file = sys.stderr if self._file is None else self._file
        if file is not None:
            file.write(_line.printable(text, getattr(file, "encoding", None) or "utf-8") + "\n")
            file.flush()

    def update(self, figures: Figures, now: float) -> None:
        if now - (figures.began if self._last is None else self._last) >= _LOG_SECONDS:
            self._last = now
            self._write(_line.line(figures, now))

    def close(self, figures: Figures, now: float, ending: str) -> None:
        self._write(_line.summary(figures, now, ending))


def rows(figures: Figures, now: float) -> list[str]:
    """The figures in lines of a notebook: the call, its loops from the outermost on, the program."""
    share, left = figures.share(now), _line.time_left(figures, now)
    parts = [_line.amount(figures), _line.rate_text(figures), _line.memory_text(figures)]
    texts = [
        "  ".join(part for part in (figures.call, "" if share is None else f"{100 * share:.0f} %", left) if part),
        *map(_line.loop_text, figures.loops),
        figures.stage or figures.activity,
        "  ".join(part for part in parts if part),
    ]
    return [_line.printable(text) for text in texts if text]


class WidgetView:
    """A bar and lines of figures by ipywidgets. Raises ImportError where they are not installed."""

    def __init__(self) -> None:
        import ipywidgets
        from IPython.display import display

        self._bar = ipywidgets.FloatProgress(min=0.0, max=1.0, layout={"width": "100%"})
        self._text = ipywidgets.HTML()
        display(ipywidgets.VBox([self._bar, self._text]))

    def _show(self, texts: list[str]) -> None:
        self._text.value = _html(texts)

    def update(self, figures: Figures, now: float) -> None:
        self._bar.value = figures.share(now) or 0.0
        self._show(rows(figures, now))

    def close(self, figures: Figures, now: float, ending: str) -> None:
        self._bar.bar_style = "danger" if ending else "success"
        if not ending:
            self._bar.value = 1.0
        self._show([_line.summary(figures, now, ending)])


class DisplayView:
    """Lines of figures in an output of a notebook that is replaced by the next ones."""

    def __init__(self) -> None:
        self._handle: Any = None

    def _show(self, texts: list[str]) -> None:
        from IPython.display import display

        shown = {"text/plain": "\n".join(texts), "text/html": _html(texts)}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def update(self, figures: Figures, now: float) -> None:
        self._show(rows(figures, now))

    def close(self, figures: Figures, now: float, ending: str) -> None:
        self._show([_line.summary(figures, now, ending)])


class HiddenView:
    """Shows nothing."""

    def update(self, figures: Figures, now: float) -> None:
        """Nothing."""

    def close(self, figures: Figures, now: float, ending: str) -> None:
        """Nothing."""


def _html(texts: list[str]) -> str:
    from html import escape

    return "".join(f'<div style="font-variant-numeric: tabular-nums">{escape(text)}</div>' for text in texts)


def in_notebook() -> bool:
    """Whether the caller is a notebook."""
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell is not None else None
    return type(kernel).__name__ == "ZMQInteractiveShell"


def on_terminal() -> bool:
    """Whether stderr is a terminal that can rewrite a line."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def chosen() -> View:
    """The view that goes with where the process runs."""
    if in_notebook():
        try:
            return WidgetView()
        except ImportError:
            return DisplayView()
    return TerminalView() if on_terminal() else LogView()


__all__ = [
    "DisplayView",
    "HiddenView",
    "LogView",
    "TerminalView",
    "View",
    "WidgetView",
    "chosen",
    "in_notebook",
    "on_terminal",
    "rows",
]
