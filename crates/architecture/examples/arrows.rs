//! Prints which file uses which: `cargo run -p outcore-architecture --example arrows -- store`.

use std::path::Path;

use outcore_architecture::{circles, Modules};

fn main() {
    for name in std::env::args().skip(1) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&name).join("src");
        let arrows = Modules::of_crate(&folder).arrows();
        for (file, used) in &arrows {
            for other in used {
                println!("{name}/{} -> {}", file.display(), other.display());
            }
        }
        for (number, group) in circles(&arrows).iter().enumerate() {
            for (from, to) in group {
                println!("circle {number} of {name}: {} uses {}", from.display(), to.display());
            }
        }
    }
}
