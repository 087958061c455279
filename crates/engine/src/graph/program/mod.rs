//! Vertex programs (FlashGraph, Zheng 2017, chapter 3): user code at each active vertex, messages, requests for lists.
//!
//! Uses `read`. Start with the trait in `run.rs`.

pub mod combine;
pub mod mail;
pub mod requests;
pub mod run;
