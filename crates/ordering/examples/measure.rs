//! Fill and time of the orderings. Arguments: graph, method, threads; see `usage`.

#[path = "../tests/support/mod.rs"]
mod support;

use outcore_ordering::OrderingWatch;
use std::io::{Read, Write};
use support::Owned;

const USAGE: &str = "measure GRAPH METHOD [THREADS] [ORDER FILE]
GRAPH: 7:SIDE 27:SIDE 5:SIDE 9:SIDE elastic:SIDE kkt:SIDE power:VERTICES random:VERTICES path:VERTICES
METHOD: degree, dissect, write (the graph into ORDER FILE), read (the order from ORDER FILE)";

fn make(name: &str) -> Owned {
    let (kind, size) = name.split_once(':').expect(USAGE);
    let size: usize = size.parse().expect(USAGE);
    match kind {
        "7" => support::grid(size, 3, false),
        "27" => support::grid(size, 3, true),
        "5" => support::grid(size, 2, false),
        "9" => support::grid(size, 2, true),
        "elastic" => support::with_copies(&support::grid(size, 3, true), 3),
        "path" => support::path(size as u32),
        "kkt" => support::kkt(size),
        "random" => support::random(size, 2 * size),
        "power" => support::power_law(size as u32, 2),
        _ => panic!("{USAGE}"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let graph = make(arguments.first().expect(USAGE));
    let threads = arguments.get(2).map_or(1, |threads| threads.parse().expect(USAGE));
    // The longest wait between two questions whether to stop.
    let asked = std::sync::Mutex::new((std::time::Instant::now(), std::time::Duration::ZERO));
    let stop = || {
        let mut asked = asked.lock().expect("no thread panics");
        asked.1 = asked.1.max(asked.0.elapsed());
        asked.0 = std::time::Instant::now();
        false
    };
    let watch = OrderingWatch { threads, stop: &stop };
    let vertices = graph.vertices();
    let start = std::time::Instant::now();
    let order = match arguments.get(1).expect(USAGE).as_str() {
        "degree" => outcore_ordering::min_degree(graph.graph(), &watch).expect("is not stopped"),
        "dissect" => outcore_ordering::dissect(graph.graph(), &watch).expect("is not stopped"),
        "write" => {
            let mut file = std::io::BufWriter::new(std::fs::File::create(&arguments[3]).expect("makes the file"));
            let mut put = |bytes: &[u8]| file.write_all(bytes).expect("writes the file");
            put(&(vertices as u64).to_le_bytes());
            put(&(graph.neighbours.len() as u64).to_le_bytes());
            graph.starts.iter().for_each(|start| put(&start.to_le_bytes()));
            graph.neighbours.iter().for_each(|other| put(&other.to_le_bytes()));
            return;
        }
        "read" => {
            let mut bytes = Vec::new();
            std::fs::File::open(&arguments[3])
                .expect("opens the file")
                .read_to_end(&mut bytes)
                .expect("reads the file");
            bytes
                .chunks_exact(4)
                .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect()
        }
        _ => panic!("{USAGE}"),
    };
    let seconds = start.elapsed().as_secs_f64();
    let fill = support::fill(graph.graph(), &order);
    println!(
        "{:12} {:8} t{threads} nnz {:9.3} M  flops {:10.3} G  {:7.3} s  {:6.2} us/vertex  wait {:5.1} ms",
        arguments[0],
        arguments[1],
        fill.nonzeros as f64 / 1e6,
        fill.flops / 1e9,
        seconds,
        seconds * 1e6 / vertices as f64,
        asked.lock().expect("no thread panics").1.as_secs_f64() * 1e3
    );
}
