//! Sizes as people read them.

const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/// A size in binary units with three figures or so: `1.50 GiB`, `512 B`.
pub fn show_size(bytes: u64) -> String {
    show(bytes, f64::round)
}

/// As `show_size`, and never less than the size: a limit that is typed in as it is shown is enough.
pub fn show_size_up(bytes: u64) -> String {
    show(bytes, f64::ceil)
}

fn show(bytes: u64, whole: fn(f64) -> f64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64;
    let mut unit = UNITS[0];
    for next in UNITS {
        size /= 1024.0;
        unit = next;
        if size < 1023.9 {
            break;
        }
    }
    let digits = if size < 9.99 { 2 } else { 1 };
    let scale = 10f64.powi(digits);
    format!("{:.*} {unit}", digits as usize, whole(size * scale) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_figures_and_a_unit() {
        let shown = [0, 1023, 1024, 1536, 10 << 20, (1 << 30) + (1 << 28), 1 << 40].map(show_size);
        assert_eq!(
            shown,
            ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "10.0 MiB", "1.25 GiB", "1.00 TiB"]
        );
    }

    #[test]
    fn what_is_rounded_up_is_no_less() {
        for bytes in [1025u64, 1_500_001, (1 << 30) - 1, (1 << 30) + 1, 123_456_789_012] {
            let text = show_size_up(bytes);
            let (number, unit) = text.split_once(' ').expect("a unit");
            let power = 1 + UNITS.iter().position(|name| *name == unit).expect("a known unit") as i32;
            let read = number.parse::<f64>().expect("a number") * 1024f64.powi(power);
            assert!(read >= bytes as f64 && read < 1.02 * bytes as f64, "{bytes}: {text}");
        }
    }
}
