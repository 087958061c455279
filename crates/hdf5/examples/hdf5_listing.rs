//! Prints what is in a file, chunks and all: `cargo run -p outcore-hdf5 --example hdf5_listing -- FILE`.

#[path = "../tests/support.rs"]
#[allow(clippy::unwrap_used)]
mod support;

fn main() {
    let path = std::env::args().nth(1).expect("a path");
    let file = support::CountingFile::new(std::fs::read(path).expect("a file"), 1 << 30);
    match support::listing(&file) {
        Ok(text) => print!("{text}"),
        Err(error) => eprintln!("{error}"),
    }
    eprintln!("{} bytes kept, {} read", file.kept.get(), file.read.get());
}
