//! Faults on demand, so that tests can fail the n-th call for every n.

use std::io::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::Duration;

/// The error an injected failure reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultKind {
    #[default]
    Eio,
    Enospc,
}

impl FaultKind {
    fn error(self) -> Error {
        let code = match self {
            FaultKind::Eio => rustix::io::Errno::IO,
            FaultKind::Enospc => rustix::io::Errno::NOSPC,
        };
        code.into()
    }
}

/// Which calls misbehave, counted from 1 since the faults were set. Each fires once, but for `fail_renames_from`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    pub fail_read_at: Option<u64>,
    pub fail_write_at: Option<u64>,
    pub fail_sync_at: Option<u64>,
    /// Names given to finished outputs, and taken back.
    pub fail_rename_at: Option<u64>,
    /// This one and all after it.
    pub fail_renames_from: Option<u64>,
    /// Transfers half of what was asked; the caller must go on.
    pub short_read_at: Option<u64>,
    pub short_write_at: Option<u64>,
    /// Writes half, then fails.
    pub torn_write_at: Option<u64>,
    /// Sleeps before the call.
    pub delay_read_at: Option<(u64, Duration)>,
    pub delay_write_at: Option<(u64, Duration)>,
    pub delay_rename_at: Option<(u64, Duration)>,
    pub write_error: FaultKind,
}

impl Faults {
    /// Reads settings such as `read:3`, `write:7:enospc`, `short-read:2`, `torn-write:1`, `sync:1`, `rename:2`,
    /// `renames-from:2` or `delay-read:4:50` (milliseconds), separated by commas.
    ///
    /// # Errors
    /// A line that names the setting that is not understood.
    pub fn parse(text: &str) -> Result<Faults, String> {
        let mut faults = Faults::default();
        for setting in text.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            faults
                .apply(setting)
                .ok_or_else(|| format!("fault setting not understood: {setting:?}"))?;
        }
        Ok(faults)
    }

    fn apply(&mut self, setting: &str) -> Option<()> {
        let mut words = setting.split(':');
        let name = words.next()?;
        let nth = Some(words.next()?.parse::<u64>().ok().filter(|nth| *nth > 0)?);
        let extra = words.next();
        if words.next().is_some() {
            return None;
        }
        let delay = || Some((nth?, Duration::from_millis(extra?.parse().ok()?)));
        match (name, extra) {
            ("read", None | Some("eio")) => self.fail_read_at = nth,
            ("sync", None | Some("eio")) => self.fail_sync_at = nth,
            ("rename", None | Some("eio")) => self.fail_rename_at = nth,
            ("renames-from", None | Some("eio")) => self.fail_renames_from = nth,
            ("write" | "torn-write", _) => {
                self.write_error = match extra {
                    None | Some("eio") => FaultKind::Eio,
                    Some("enospc") => FaultKind::Enospc,
                    Some(_) => return None,
                };
                *if name == "write" {
                    &mut self.fail_write_at
                } else {
                    &mut self.torn_write_at
                } = nth;
            }
            ("short-read", None) => self.short_read_at = nth,
            ("short-write", None) => self.short_write_at = nth,
            ("delay-read", Some(_)) => self.delay_read_at = Some(delay()?),
            ("delay-rename", Some(_)) => self.delay_rename_at = Some(delay()?),
            ("delay-write", Some(_)) => self.delay_write_at = Some(delay()?),
            _ => return None,
        }
        Some(())
    }
}

/// What a call is to do.
pub(super) enum Injected {
    Nothing,
    Fail(Error),
    Short,
    Torn(Error),
}

#[derive(Default)]
pub(super) struct FaultState {
    armed: AtomicBool,
    plan: Mutex<FaultPlan>,
}

#[derive(Default)]
struct FaultPlan {
    faults: Faults,
    reads: u64,
    writes: u64,
    syncs: u64,
    renames: u64,
}

impl FaultState {
    pub(super) fn set(&self, faults: Option<Faults>) {
        let mut plan = self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.armed.store(faults.is_some(), Ordering::Release);
        *plan = FaultPlan {
            faults: faults.unwrap_or_default(),
            ..FaultPlan::default()
        };
    }

    /// Counts one call and returns the faults with its number, when faults are set.
    fn count(&self, counter: impl Fn(&mut FaultPlan) -> &mut u64) -> Option<(Faults, u64)> {
        if !self.armed.load(Ordering::Acquire) {
            return None;
        }
        let mut plan = self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *counter(&mut plan) += 1;
        let call = *counter(&mut plan);
        Some((plan.faults, call))
    }

    pub(super) fn before_read(&self) -> Injected {
        let Some((faults, call)) = self.count(|plan| &mut plan.reads) else {
            return Injected::Nothing;
        };
        delay(faults.delay_read_at, call);
        if faults.fail_read_at == Some(call) {
            Injected::Fail(FaultKind::Eio.error())
        } else if faults.short_read_at == Some(call) {
            Injected::Short
        } else {
            Injected::Nothing
        }
    }

    pub(super) fn before_write(&self) -> Injected {
        let Some((faults, call)) = self.count(|plan| &mut plan.writes) else {
            return Injected::Nothing;
        };
        delay(faults.delay_write_at, call);
        if faults.fail_write_at == Some(call) {
            Injected::Fail(faults.write_error.error())
        } else if faults.torn_write_at == Some(call) {
            Injected::Torn(faults.write_error.error())
        } else if faults.short_write_at == Some(call) {
            Injected::Short
        } else {
            Injected::Nothing
        }
    }

    pub(super) fn before_sync(&self) -> std::io::Result<()> {
        match self.count(|plan| &mut plan.syncs) {
            Some((faults, call)) if faults.fail_sync_at == Some(call) => Err(FaultKind::Eio.error()),
            _ => Ok(()),
        }
    }

    pub(super) fn before_rename(&self) -> std::io::Result<()> {
        let Some((faults, call)) = self.count(|plan| &mut plan.renames) else {
            return Ok(());
        };
        delay(faults.delay_rename_at, call);
        let fails = faults.fail_rename_at == Some(call) || faults.fail_renames_from.is_some_and(|first| call >= first);
        if fails {
            return Err(FaultKind::Eio.error());
        }
        Ok(())
    }
}

fn delay(setting: Option<(u64, Duration)>, call: u64) {
    if let Some((_, pause)) = setting.filter(|(nth, _)| *nth == call) {
        std::thread::sleep(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_or_refused_by_name() {
        let faults = Faults::parse("read:3, torn-write:7:enospc,delay-read:1:20").unwrap();
        assert_eq!((faults.fail_read_at, faults.torn_write_at), (Some(3), Some(7)));
        assert_eq!(faults.write_error, FaultKind::Enospc);
        assert_eq!(faults.delay_read_at, Some((1, Duration::from_millis(20))));
        for bad in [
            "read",
            "read:0",
            "read:x",
            "write:1:ebadf",
            "reed:1",
            "delay-read:1",
            "sync:1:2:3",
        ] {
            assert_eq!(
                Faults::parse(bad).unwrap_err(),
                format!("fault setting not understood: {bad:?}")
            );
        }
    }
}
