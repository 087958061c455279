"""Cards of sessions and of outcomes: counters by name."""

from __future__ import annotations

from outcore._base.sizes import format_size
from outcore._base.times import format_time
from outcore._session.record import Outcome
from outcore._session.session import KeptArray, Session
from outcore._show.card import Fact, card, path_fact

_KEPT_SHOWN = 8


def session_card(session: Session) -> str:
    """The limits of a session, the bytes that it holds in memory, and those that it has moved. No I/O."""
    counted, options = session.counters(), session.options
    working = counted["reserved_bytes"] - counted["kept_bytes"]
    facts = [
        Fact("memory limit", f"{format_size(options['memory_limit'])} for the process"),
        Fact("budget", f"{format_size(counted['budget_bytes'])} of it for arrays"),
        Fact("kept", f"{format_size(counted['kept_bytes'])} of tiles, values and pages, which give way"),
        Fact("in use", f"{format_size(working)} reserved beside"),
        Fact("peak", f"{format_size(counted['peak_bytes'])} reserved"),
        Fact("moved", f"{format_size(counted['bytes_read'])} read, {format_size(counted['bytes_written'])} written"),
        Fact("policy", str(options["policy"])),
        Fact("threads", "one for each core" if options["threads"] is None else str(options["threads"])),
    ]
    kept = session.kept()
    facts += [_kept_fact(array) for array in kept[:_KEPT_SHOWN]]
    if len(kept) > _KEPT_SHOWN:
        total = sum(array.bytes for array in kept[_KEPT_SHOWN:])
        facts.append(Fact("kept, others", f"{format_size(total)} of {len(kept) - _KEPT_SHOWN} arrays and values"))
    if session.counted_masks:
        facts.append(Fact("masks", f"{len(session.counted_masks)} counted, whose elements are not counted again"))
    return card("outcore.Session", facts, None, ("", "clear()", " gives back what is kept"))


def _kept_fact(array: KeptArray) -> Fact:
    """The row of an array with tiles in memory, or of a value."""
    if array.tiles is None:
        return Fact("kept value", f"{format_size(array.bytes)}: {array.name}")
    tiles = "1 tile" if array.tiles == 1 else f"{array.tiles:,} tiles"
    return path_fact("kept tiles", array.name, before=f"{format_size(array.bytes)} in {tiles} of ")


def outcome_card(outcome: Outcome) -> str:
    """The counters of a run."""
    spilled = f", {format_size(outcome.bytes_spilled)} of them spilled" if outcome.bytes_spilled else ""
    facts = [
        Fact("read", format_size(outcome.bytes_read)),
        Fact("written", format_size(outcome.bytes_written) + spilled),
        Fact("peak", f"{format_size(outcome.peak_bytes)} reserved"),
        Fact("time", format_time(outcome.seconds)),
        Fact(
            "of all threads",
            f"{format_time(outcome.read_seconds)} reading, {format_time(outcome.compute_seconds)} computing",
        ),
    ]
    for name, value in outcome.other.items():
        if not value:
            continue
        is_size = name.startswith("bytes_") or name.endswith("_bytes")
        if isinstance(value, str) or (type(value) in (int, float) and not is_size):
            facts.append(Fact(name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value)))
        elif type(value) in (int, float):
            facts.append(Fact(name.replace("_", " "), format_size(value)))
    return card("outcore.Outcome", facts)


__all__ = ["outcome_card", "session_card"]
