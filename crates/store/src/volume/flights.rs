//! Transfers of a disk's thread that are under way together: by its ring where the part is one that the kernel reads and
//! writes past its cache, else by plain calls, one after the other.

use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::scatter::Lent;
use crate::backend::{descriptor, Bell, Blob, Ring, DEPTH};
use crate::base::locked::locked;

/// Who counts the calls of a disk's thread, and names the disk in errors.
pub(crate) trait Meter: Send + Sync {
    /// Counts a call that began then, and names the disk in its error.
    fn count(&self, write: bool, begun: Instant, outcome: Result<usize>) -> Result<usize>;
    /// An error of this disk, which is counted.
    fn error(&self, cause: Error) -> Error;
}

/// What became of the transfers that one request has on a disk.
#[derive(Clone)]
pub(crate) struct TransferOutcome(Arc<Mutex<TransferTally>>);

struct TransferTally {
    left: usize,
    failed: Option<Error>,
}

impl TransferOutcome {
    pub(crate) fn of(transfers: usize) -> TransferOutcome {
        TransferOutcome(Arc::new(Mutex::new(TransferTally {
            left: transfers,
            failed: None,
        })))
    }

    /// Says that one is over.
    pub(crate) fn over(&self, outcome: Result<()>) {
        let mut tally = locked(&self.0);
        tally.left -= 1;
        tally.failed = tally.failed.take().or(outcome.err());
    }

    /// The first error, also where one was never over: its thread failed.
    pub(crate) fn take(&self) -> Result<()> {
        let mut tally = locked(&self.0);
        match tally.failed.take() {
            Some(cause) => Err(cause),
            None if tally.left > 0 => Err(Error::other("the thread of a disk failed")),
            None => Ok(()),
        }
    }
}

/// A stretch of a part, to or from buffers of a caller who waits.
pub(crate) struct Transfer {
    pub disk: Arc<dyn Meter>,
    pub part: Arc<dyn Blob>,
    pub write: bool,
    pub offset: u64,
    /// Bytes of the buffers, and how many of them must be transferred: a direct read may ask for more than there is.
    pub bytes: usize,
    pub expected: usize,
    pub outcome: TransferOutcome,
}

struct Flight {
    transfer: Transfer,
    done: usize,
    begun: Instant,
    /// Past the ring, which would not do it without blocking.
    plain: bool,
}

#[derive(Default)]
pub(crate) struct Flights {
    ring: Option<Ring<Lent>>,
    /// By the ring's numbers.
    flights: Vec<Option<Flight>>,
}

enum FlightStep {
    Again,
    Over(Result<()>),
}

impl Flight {
    fn after(&mut self, outcome: Result<usize>) -> FlightStep {
        let Transfer {
            disk,
            part,
            write,
            expected,
            ..
        } = &self.transfer;
        let moved = match disk.count(*write, self.begun, outcome) {
            Ok(moved) => moved,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => return FlightStep::Again,
            Err(cause) if cause.kind() == ErrorKind::WouldBlock && !self.plain => {
                self.plain = true;
                return FlightStep::Again;
            }
            Err(cause) => return FlightStep::Over(Err(cause)),
        };
        if self.done + moved >= *expected {
            return FlightStep::Over(Ok(()));
        }
        // A direct call is gone on with on a page; one that ends inside a page has met the end of the part.
        let whole = moved - moved % part.alignment();
        if whole > 0 {
            self.done += whole;
            return FlightStep::Again;
        }
        let missing = expected - self.done - moved;
        let cause = match write {
            true => ErrorKind::WriteZero.into(),
            false => Error::new(
                ErrorKind::UnexpectedEof,
                format!("its part of the file ends {missing} bytes early"),
            ),
        };
        FlightStep::Over(Err(disk.error(cause)))
    }

    fn call(&self, buffers: &mut [Lent]) -> Result<usize> {
        let Transfer {
            part, write, offset, ..
        } = &self.transfer;
        let at = offset + self.done as u64;
        if *write {
            let mut slices: Vec<IoSlice> = buffers.iter().map(|buffer| IoSlice::new(buffer)).collect();
            let mut rest = &mut slices[..];
            IoSlice::advance_slices(&mut rest, self.done);
            return part.write_vectored_at(rest, at);
        }
        let mut slices: Vec<IoSliceMut> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let mut rest = &mut slices[..];
        IoSliceMut::advance_slices(&mut rest, self.done);
        part.read_vectored_at(rest, at)
    }
}

impl Flights {
    /// Starts a transfer; one that no ring takes is over when this returns.
    pub(crate) fn start(&mut self, transfer: Transfer, buffers: Vec<Lent>) {
        let flight = Flight {
            transfer,
            done: 0,
            begun: Instant::now(),
            plain: false,
        };
        self.go_on(flight, buffers);
    }

    /// Makes the next call of a transfer, until one is under way or it is over. Its buffers go when its outcome is told:
    /// who lent them finds that.
    fn go_on(&mut self, mut flight: Flight, mut buffers: Vec<Lent>) {
        while flight.done < flight.transfer.expected {
            flight.begun = Instant::now();
            let Transfer {
                part,
                write,
                offset,
                bytes,
                ..
            } = &flight.transfer;
            // What goes through the kernel's cache would only be handed to threads of the kernel.
            let by_ring = !flight.plain && part.alignment() > 1;
            let file = descriptor(part).filter(|_| by_ring);
            if let Some(file) = file.filter(|_| self.has_room()) {
                let (file, at) = ((file, part.clone()), offset + flight.done as u64);
                let (done, rest) = (flight.done, bytes - flight.done);
                let ring = self.ring.as_mut().expect("looked at above");
                let number = match write {
                    true => ring.write((file.0, file.1), buffers, done, rest, at),
                    false => ring.read((file.0, file.1), buffers, done, rest, at),
                };
                if self.flights.len() <= number {
                    self.flights.resize_with(number + 1, || None);
                }
                self.flights[number] = Some(flight);
                return;
            }
            let outcome = flight.call(&mut buffers);
            if let FlightStep::Over(outcome) = flight.after(outcome) {
                return flight.transfer.outcome.over(outcome);
            }
        }
        flight.transfer.outcome.over(Ok(()));
    }

    fn has_room(&mut self) -> bool {
        if self.ring.is_none() {
            self.ring = Ring::take();
        }
        while self.under_way() >= DEPTH {
            self.complete(true);
        }
        self.ring.is_some()
    }

    pub(crate) fn under_way(&self) -> usize {
        self.ring.as_ref().map_or(0, Ring::flying)
    }

    /// Starts what was taken, and waits until a call is over or `bell` rings.
    pub(crate) fn wait(&mut self, bell: &Bell) {
        if let Some(ring) = &mut self.ring {
            ring.wait(bell);
        }
    }

    /// Goes on with the transfers whose calls are over; with `wait`, once there is one.
    pub(crate) fn complete(&mut self, mut wait: bool) {
        while let Some((number, buffers, outcome)) = self.ring.as_mut().and_then(|ring| ring.next(wait)) {
            wait = false;
            let mut flight = self.flights[number].take().expect("the ring's requests are these");
            match flight.after(outcome) {
                FlightStep::Again => self.go_on(flight, buffers),
                FlightStep::Over(outcome) => flight.transfer.outcome.over(outcome),
            }
        }
    }
}
