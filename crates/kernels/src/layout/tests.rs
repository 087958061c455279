//! Properties against naive oracles.
