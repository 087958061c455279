//! Time of matchings. Arguments: matrix, method; see `USAGE`.

#[path = "../tests/support/mod.rs"]
mod support;

use outcore_ordering::{match_entries, symmetric_matching, OrderingWatch};
use support::columns::{random_columns, OwnedColumns};

const USAGE: &str = "matching MATRIX METHOD
MATRIX: random:ROWS (5 entries a row) ones:ROWS (the same of equal sizes) low:ROWS (its rows but each
        tenth) dense:ROWS 7:SIDE 27:SIDE 5:SIDE kkt:SIDE power:ROWS path:ROWS star:ROWS
METHOD: match, symmetric";

fn make(name: &str) -> OwnedColumns {
    let (kind, size) = name.split_once(':').expect(USAGE);
    let size: usize = size.parse().expect(USAGE);
    let mut number = support::random_numbers(5);
    let sizes: Vec<f64> = (0..1 << 16).map(|_| f64::from(1 + number(1 << 20))).collect();
    let scattered = |vertex: u32| vertex.wrapping_mul(40_503) as usize;
    let symmetric = |one: u32, other: u32| sizes[(scattered(one) ^ scattered(other)) % sizes.len()];
    match kind {
        "random" => random_columns(size as u32, 5, |number| f64::from(number) + 1.0),
        "ones" => random_columns(size as u32, 5, |_| 1.0),
        "low" => random_columns(size as u32, 5, |number| f64::from(number) + 1.0).mapped(|row, _, entry| {
            if row % 10 == 0 {
                0.0
            } else {
                entry
            }
        }),
        "dense" => OwnedColumns::of_fn(size as u32, size as u32, |_, _| f64::from(1 + number(1 << 30))),
        "7" => OwnedColumns::of_graph(&support::grid(size, 3, false), symmetric),
        "27" => OwnedColumns::of_graph(&support::grid(size, 3, true), symmetric),
        "5" => OwnedColumns::of_graph(&support::grid(size, 2, false), symmetric),
        "kkt" => OwnedColumns::of_graph(&support::kkt(size), symmetric),
        "power" => OwnedColumns::of_graph(&support::power_law(size as u32, 3), symmetric),
        "path" => OwnedColumns::of_graph(&support::path(size as u32), symmetric),
        "star" => OwnedColumns::of_graph(&support::star(size as u32), symmetric),
        _ => panic!("{USAGE}"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let matrix = make(arguments.first().expect(USAGE));
    // The longest wait between two questions whether to stop.
    let asked = std::sync::Mutex::new((std::time::Instant::now(), std::time::Duration::ZERO));
    let stop = || {
        let mut asked = asked.lock().expect("no thread panics");
        asked.1 = asked.1.max(asked.0.elapsed());
        asked.0 = std::time::Instant::now();
        false
    };
    let watch = OrderingWatch {
        threads: 1,
        stop: &stop,
    };
    let start = std::time::Instant::now();
    let matched = match arguments.get(1).expect(USAGE).as_str() {
        "match" => match_entries(matrix.columns(), &watch).expect("is not stopped").matched,
        "symmetric" => {
            symmetric_matching(matrix.columns(), &watch)
                .expect("is not stopped")
                .matched
        }
        _ => panic!("{USAGE}"),
    };
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{:14} {:9} rows {:9} entries {:10} matched {:9}  {:8.3} s  wait {:5.1} ms",
        arguments[0],
        arguments[1],
        matrix.rows,
        matrix.indices.len(),
        matched,
        seconds,
        asked.lock().expect("no thread panics").1.as_secs_f64() * 1e3
    );
}
