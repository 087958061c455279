//! The process that work belongs to, where no other can go on with it: its arrays or functions are known to that process alone.

use std::fs;
use std::path::Path;

use crate::StoreError;

/// The file in a folder of unfinished work that names the process it belongs to.
pub(crate) const OWNER: &str = "process";

/// The start of this boot, a process's number, and the clock tick at which that process began, so that a number which is given
/// anew stands for another process.
fn name_of(process: &str) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may hold anything: the third field and those that follow.
    let (number, rest) = (status.split(' ').next()?, status.rsplit_once(')')?.1);
    let began = rest.split_whitespace().nth(19)?;
    Some(format!("{} {number} {began}", boot.trim()))
}

/// Notes in a folder that its work belongs to this process.
///
/// # Errors
/// Errors of the file system.
pub(crate) fn note_owner(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(OWNER);
    let name = name_of("self").unwrap_or_default();
    fs::write(&path, name).map_err(|cause| StoreError::io(&path, 0, "write", cause))
}

/// Whether the work in a folder belongs to a process that has ended.
pub(crate) fn is_lost(folder: &Path) -> bool {
    let Ok(owner) = fs::read_to_string(folder.join(OWNER)) else {
        return false;
    };
    let number = owner
        .split(' ')
        .nth(1)
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    number.is_some_and(|number| name_of(number).as_deref() != Some(&owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_a_process_is_lost_when_it_has_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!is_lost(folder.path()), "it belongs to nobody");
        note_owner(folder.path()).expect("a file");
        assert!(!is_lost(folder.path()), "this process is alive");
        let path = folder.path().join(OWNER);
        let own = fs::read_to_string(&path).expect("a name");
        let (rest, began) = own.rsplit_once(' ').expect("three parts");
        fs::write(&path, format!("{rest} {}", began.parse::<u64>().expect("a tick") + 1)).expect("a file");
        assert!(is_lost(folder.path()), "its number is another's");
        fs::write(&path, "../../etc x/../1 9").expect("a file");
        assert!(!is_lost(folder.path()), "no name of ours");
    }
}
