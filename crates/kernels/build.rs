//! Which instruction sets the kernels are compiled for: those of the processor that builds, or with the feature `portable`
//! those of every processor that a wheel is for.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(level_v3, level_v4)");
    if var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        return;
    }
    let here = var("HOST") == var("TARGET") && var("CARGO_FEATURE_PORTABLE").is_err();
    let (v3, v4) = if here { (!has_v4(), has_v4()) } else { (true, true) };
    for (name, compiled) in [("level_v3", v3), ("level_v4", v4)] {
        if compiled {
            println!("cargo::rustc-cfg={name}");
        }
    }
}

/// As `level` in `fence/shells.rs` decides.
#[cfg(target_arch = "x86_64")]
fn has_v4() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_v4() -> bool {
    false
}
