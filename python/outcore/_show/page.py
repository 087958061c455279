"""The page of a profile: what the runs of a block did, as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from outcore._base.shortened import call_text, short_text
from outcore._base.sizes import format_size
from outcore._base.times import format_time
from outcore._base.types import JSONObject
from outcore._session.record import Failure, Iterations, Outcome
from outcore._session.trace import Run
from outcore._show.charts import activity
from outcore._show.markup import Markup, element, joined
from outcore._show.names import is_scratch, short
from outcore._show.run import details
from outcore._show.style import FOOT, HEAD, STYLE
from outcore._show.tables import disclosure, sums, table, wide
from outcore._show.verdict import beyond_slices, bound, forecast_held, limit_cost, read_twice, searched

# Sentences on files that many runs read, at most.
_FILES_SHOWN = 5
# Lines of the user's that have charts: those with the longest runs.
_SECTIONS_MAX = 24
_NAME_MAX = 60  # letters of a line's name in text


class RunGroup(NamedTuple):
    """Runs of one line of the user's: how many, their sums, and the longest of them."""

    name: str
    text: str
    number: int
    bytes_read: int
    bytes_written: int
    bytes_spilled: int
    peak_bytes: int
    seconds: float
    longest: Outcome
    #: Its trace, where it was kept.
    run: Run | None

    def __repr__(self) -> str:
        sizes = (self.bytes_read, self.bytes_written, self.bytes_spilled, self.peak_bytes)
        read, written, spilled, peak = map(format_size, sizes)
        of = f" ({spilled} of them spilled)" if self.bytes_spilled else ""
        runs = "1 run" if self.number == 1 else f"{self.number:,} runs"
        counted = [f"{read} read", f"{written} written{of}", f"peak {peak}", format_time(self.seconds)]
        return call_text("RunGroup", [f"{short_text(self.name, _NAME_MAX)}: {runs}", *counted])


class FileReads(NamedTuple):
    """Reads of a file by all runs: bytes, runs, and bytes of reading each tile once."""

    read: int
    runs: int
    once: int


class Runs(Protocol):
    """Figures of the page: runs, their sums, and disks of volumes."""

    outcomes: list[Outcome]
    #: Runs that raised.
    failed: list[Failure]

    @property
    def groups(self) -> list[RunGroup]: ...
    @property
    def files(self) -> Mapping[str, FileReads]: ...
    @property
    def disks(self) -> list[JSONObject]: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_written(self) -> int: ...
    @property
    def bytes_spilled(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def seconds(self) -> float: ...


def page(profile: Runs) -> str:
    """The page, whole."""
    return f"{HEAD.format(title='Profile')}{content(profile)}{FOOT}"


def content(profile: Runs) -> Markup:
    """The content of the page, with its style: a part of any page."""
    parts = [element("style", Markup(STYLE))]
    groups = profile.groups
    parts += [element("p", _failed(failure)) for failure in profile.failed]
    if not profile.outcomes:
        parts += [] if profile.failed else [element("p", "Nothing ran.")]
    else:
        parts += _lead(profile, groups)
        parts += [_sums(profile), element("h2", "Runs"), _runs(groups)]
    if profile.disks:
        parts += [element("h2", "Disks of volumes"), _disks(profile.disks)]
    shown = sorted(groups, key=lambda group: -group.longest.seconds)[:_SECTIONS_MAX]
    for number, group in enumerate(groups, 1):
        if group in shown:
            parts += _section(number, group)
    return element("div", joined(parts), class_="outcore")


def _failed(failure: Failure) -> str:
    """The error that ended a run, and the part that was done until then; or the refusal of its plan."""
    message = f": {failure.message}" if failure.message else ""
    if failure.is_refused:
        return _stopped(f"{failure.call} was refused before it began, by {failure.error}{message}")
    if failure.tasks_total:
        done = (
            f"Done of its program by the last report: {failure.tasks_done:,} of {failure.tasks_total:,} tasks, "
            f"{format_size(failure.bytes_done)} of {format_size(failure.bytes_total)} read and written."
        )
    else:
        done = "No task had been reported as done."
    ended = f"{failure.call} was ended after {format_time(failure.seconds)} by {failure.error}{message}"
    return f"{_stopped(ended)} {done}"


def _stopped(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def _lead(profile: Runs, groups: Sequence[RunGroup]) -> list[Markup]:
    """The sentences at the top: what bound the longest run, and what would help."""
    longest = max(groups, key=lambda group: group.longest.seconds)
    parts = []
    if longest.run is not None:
        if len(groups) > 1:
            share = 100 * longest.seconds / max(profile.seconds, 1e-9)
            which = f"{longest.name} took {share:.0f} % of the time. "
        elif longest.number > 1:
            which = f"{longest.number:,} runs of one line; of the longest: "
        else:
            which = ""
        parts.append(element("p", f"{which}{bound(longest.longest, longest.run)}", class_="lead"))
        parts += [element("p", sentence) for sentence in beyond_slices(longest.run)]
    shared = _shared(profile.files)
    if longest.run is not None and longest.run.traces and not (shared and longest.number > 1):
        parts.append(element("p", " ".join(limit_cost(longest.longest, longest.run))))
    return parts + [element("p", sentence) for sentence in shared]


def _shared(files: Mapping[str, FileReads]) -> list[str]:
    """Sentences on files that several runs read."""
    several = [(name, file) for name, file in files.items() if _is_reread(name, file)]
    several.sort(key=lambda item: item[1].once - item[1].read)
    return [
        f"{short(name)} was read by {file.runs:,} runs: {format_size(file.read)} together, where once is "
        f"{format_size(file.once)}. Tiles that stay in memory from one run to the next are not read again: a limit "
        "that holds the file, or results that are asked for together, save the rest."
        for name, file in several[:_FILES_SHOWN]
    ]


def _is_reread(name: str, file: FileReads) -> bool:
    """Whether several runs read a file of the user's; those of scratch are how runs hand on values."""
    return file.runs > 1 and file.read > file.once and not is_scratch(name)


def _sums(profile: Runs) -> Markup:
    figures = [
        ("runs", f"{len(profile.outcomes):,}"),
        ("read", format_size(profile.bytes_read)),
        ("written", format_size(profile.bytes_written)),
        ("of these spilled", format_size(profile.bytes_spilled)),
        ("peak reserved", format_size(profile.peak_bytes)),
        ("time", format_time(profile.seconds)),
    ]
    return sums(figures)


def _runs(groups: Sequence[RunGroup]) -> Markup:
    head = ["run", "read", "written", "spilled", "peak reserved", "time"]
    rows = []
    for number, group in enumerate(groups, 1):
        times = f"{group.number:,} × " if group.number > 1 else ""
        name = element("a", f"{times}{group.name}", href=f"#run-{number}") if _has_section(group) else group.name
        sizes = (group.bytes_read, group.bytes_written, group.bytes_spilled, group.peak_bytes)
        rows.append([name, *map(format_size, sizes), format_time(group.seconds)])
    return table(head, rows, name="Runs", text=("run",))


def _has_section(group: RunGroup) -> bool:
    return group.run is not None or "graph" in group.longest.other


def _section(number: int, group: RunGroup) -> list[Markup]:
    """All that there is to say of the runs of a line."""
    if not _has_section(group):
        return []
    outcome = group.longest
    heading = f"{group.name}, {group.number:,} runs; the longest" if group.number > 1 else group.name
    parts = [element("h2", heading, id=f"run-{number}")]
    if group.text:
        parts.append(element("p", element("code", group.text)))
    if "graph" in outcome.other:
        return [*parts, *_of_graph(outcome)]
    if "work" in outcome.other and group.run is not None:
        return [*parts, *_of_work(outcome, group.run)]
    if group.run is None or not group.run.traces:
        took = f"The longest took {format_time(outcome.seconds)}; shorter runs are not looked at."
        return [*parts, element("p", f"{took} {forecast_held(outcome)}".rstrip())]
    traced, programs = len(group.run.traces), len(outcome.other.get("stages", ()))
    if traced < programs:
        parts.append(element("p", f"The longest {traced:,} of {programs:,} stages are shown."))
    sentences = [bound(outcome, group.run), *beyond_slices(group.run), *read_twice(group.run)]
    sentences += limit_cost(outcome, group.run)
    resumed = outcome.other.get("resumed_tiles", 0)
    if resumed:
        sentences.append(f"An earlier run had left {resumed:,} tiles, which were not computed again.")
    sentences.append(forecast_held(outcome))
    parts += [element("p", sentence) for sentence in sentences if sentence]
    return [*parts, *details(outcome, group.run)]


def _of_work(outcome: Outcome, run: Run) -> list[Markup]:
    """Sentences about an ingest or a scan, and charts of the programs inside of it."""
    sentences = [bound(outcome, run), *read_twice(run)]
    if not run.traces:
        return [element("p", sentences[0])]
    if len(run.traces) < outcome.other["programs"]:
        sentences.append(f"The longest {len(run.traces):,} of {outcome.other['programs']:,} programs are shown.")
    return [*(element("p", sentence) for sentence in sentences), *details(outcome, run)]


def _disks(disks: Sequence[JSONObject]) -> Markup:
    head = ["volume", "disk", "requests", "read", "written", "seconds at work", "a second", "errors", "speed"]
    rows = []
    for row in disks:
        moved, busy = row["bytes_read"] + row["bytes_written"], row["busy_seconds"]
        counted = [f"{row['requests']:,}", format_size(row["bytes_read"]), format_size(row["bytes_written"])]
        speed = format_size(moved / busy) if busy else ""
        mark = element("span", "slow", class_="slow") if row["slow"] else ""
        rows.append([row["volume"], row["disk"], *counted, _seconds(busy), speed, f"{row['errors']:,}", mark])
    return table(head, rows, name="Disks of volumes", text=("volume", "disk", "speed"))


def _of_graph(outcome: Outcome) -> list[Markup]:
    """Charts of a run over a graph, and the same as numbers."""
    name, rows = outcome.other["graph"], outcome.other["iterations"]
    parts = [element("p", f"{run_over_graph(outcome)}."), *(element("p", text) for text in searched(outcome))]
    if not rows:
        return parts
    head = ["iteration", "active", "lists", "read", "from the cache", "seconds"]
    figures = []
    for row in rows:
        last = row.first + row.number - 1
        at = f"{row.first:,}" if row.number == 1 else f"{row.first:,} to {last:,}"
        counts = (f"{row.active:,}", f"{row.lists:,}", format_size(row.bytes_read), f"{row.cache_hits:,}")
        figures.append([at, *counts, _seconds(row.seconds)])
    of = table(head, figures, name="Iterations")
    numbers = disclosure("The numbers", of)
    return [*parts, wide(activity(name, rows), "Iterations over time"), numbers]


def run_over_graph(outcome: Outcome) -> str:
    """In a line."""
    rows: Sequence[Iterations] = outcome.other["iterations"]
    total = sum(row.number for row in rows)
    parts = [f"{outcome.other['graph']}: {'1 iteration' if total == 1 else f'{total:,} iterations'}"]
    if "bytes_beside_iterations" in outcome.other:
        parts.append(f"{format_size(outcome.other['bytes_beside_iterations'])} read beside them")
    if "error" in outcome.other:
        parts.append(f"ended by {outcome.other['error']}")
    return "; ".join(parts)


def _seconds(value: float) -> str:
    return f"{value:,.3f}"


__all__ = ["FileReads", "RunGroup", "content", "page", "run_over_graph"]
