//! Work on whole volumes: making them, adding and removing disks, checking and rebalancing. Uses `durable` and the rooms
//! below it. Start with `admin.rs`.

pub mod admin;
pub mod rebalance;
pub mod scan;

#[cfg(test)]
mod tests;
