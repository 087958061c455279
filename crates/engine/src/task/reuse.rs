//! The least that nests of loops move, by how often an element can be used while it is in memory.

/// Exponents that are tried for each array; any that cover all loops give a bound.
const EXPONENTS: [f64; 5] = [0.0, 1.0 / 3.0, 0.5, 2.0 / 3.0, 1.0];
/// More arrays than these are not looked at.
const ARRAYS_MAX: usize = 6;

/// A nest, each iteration of which uses one element of each array or more.
#[derive(Clone, Debug)]
pub struct NestReuse {
    pub iterations: f64,
    pub uses: Vec<NestUse>,
    /// Bytes of the smallest element.
    pub item: u64,
}

/// A use of an array: by subscripts that each follow one loop, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NestUse {
    /// Uses of one array may be of the same elements.
    pub array: usize,
    /// The loops of the subscripts, as bits.
    pub loops: u32,
}

impl NestReuse {
    /// The nest of a matrix product, whose operands may be of one array.
    pub fn of_product(iterations: f64, item: u64, is_of_one: bool) -> NestReuse {
        let by = |array, loops| NestUse { array, loops };
        NestReuse {
            iterations,
            uses: vec![by(0, 0b011), by(1, 0b101), by(if is_of_one { 1 } else { 2 }, 0b110)],
            item,
        }
    }

    /// Bytes that any order of the iterations brings into so much memory, at least; nothing where the
    /// elements of an array are used once.
    ///
    /// With `D` elements of each array at hand there are at most `∏ D^s` iterations, where the exponents of the arrays of each
    /// loop sum up to 1 or more (Loomis and Whitney; Christ, Demmel, Knight, Scanlon, Yelick, 2013), so that while `X` elements
    /// come in at most so many run as `S + X` elements give, best for `X = S / (∑ s - 1)` (Kwasniewski and others, SC 2021). For a
    /// matrix product that is `2mnk / √S` (Smith, van de Geijn, arXiv 1702.02017).
    pub fn least_bytes(&self, memory: u64) -> Option<u64> {
        let count = self.uses.len();
        let all = self.uses.iter().fold(0, |all, by| all | by.loops);
        let is_reused = self.uses.iter().all(|by| by.loops != all);
        let is_bound = is_reused && (2..=ARRAYS_MAX).contains(&count) && memory > 0 && self.item > 0;
        let choices = EXPONENTS.len().pow(if is_bound { count as u32 } else { return None });
        let elements = (memory / self.item) as f64;
        let most = (0..choices).filter_map(|choice| {
            let exponents = (0..count).map(|at| EXPONENTS[choice / EXPONENTS.len().pow(at as u32) % EXPONENTS.len()]);
            let exponents: Vec<f64> = exponents.collect();
            let covers = |of: u32| {
                let of_loop = self
                    .uses
                    .iter()
                    .zip(&exponents)
                    .filter(|(by, _)| by.loops & 1 << of != 0);
                of_loop.map(|(_, exponent)| exponent).sum::<f64>() > 1.0 - 1e-9
            };
            let is_covered = (0..u32::BITS).filter(|of| all & 1 << of != 0).all(covers);
            is_covered.then(|| self.elements_for(&exponents, elements)).flatten()
        });
        most.reduce(f64::max)
            .map(|most| (most * self.item as f64).max(0.0) as u64)
    }

    /// Elements that come in at least, by the exponents of the uses.
    fn elements_for(&self, exponents: &[f64], memory: f64) -> Option<f64> {
        let sum: f64 = exponents.iter().sum();
        if sum < 1.0 + 1e-9 {
            return None;
        }
        let arrays: std::collections::BTreeSet<usize> = self.uses.iter().map(|by| by.array).collect();
        let of_array = |array: usize| -> f64 {
            let uses = self.uses.iter().zip(exponents).filter(|(by, _)| by.array == array);
            uses.map(|(_, exponent)| exponent).sum()
        };
        let weights = arrays.into_iter().map(of_array).filter(|&weight| weight > 0.0);
        let together: f64 = weights.map(|weight| weight.powf(weight)).product();
        let brought = memory / (sum - 1.0);
        let iterations = brought.powf(sum) * together;
        Some(brought * (self.iterations / iterations - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn ratio(nest: &NestReuse, memory: u64, least: f64) -> f64 {
        nest.least_bytes(memory).unwrap_or_default() as f64 / least
    }

    #[test]
    fn a_product_brings_in_the_known_bound() {
        let (side, elements) = (20_000f64, (64 * MIB / 8) as f64);
        let least = 8.0 * (2.0 * side.powi(3) / elements.sqrt() - 2.0 * elements);
        let nest = NestReuse::of_product(side.powi(3), 8, false);
        assert!((ratio(&nest, 64 * MIB, least) - 1.0).abs() < 1e-6);
        // Each element of an array that is both operands may serve twice.
        let nest = NestReuse::of_product(side.powi(3), 8, true);
        assert!(ratio(&nest, 64 * MIB, least) < 0.6);
    }

    #[test]
    fn what_is_used_once_has_no_bound() {
        let by = |array, loops| NestUse { array, loops };
        let nest = NestReuse {
            iterations: 1e9,
            uses: vec![by(0, 0b11), by(1, 0b01), by(2, 0b10)],
            item: 8,
        };
        assert_eq!(nest.least_bytes(MIB), None);
        let steps = NestReuse {
            uses: vec![by(0, 0b11)],
            ..nest
        };
        assert_eq!(steps.least_bytes(MIB), None);
    }

    #[test]
    fn pairs_of_a_list_are_as_many_as_the_square_of_what_is_in_memory() {
        // f(x[i], y[j]) in n² iterations: n² / 2S loads, less those of the last part.
        let by = |array, loops| NestUse { array, loops };
        let nest = NestReuse {
            iterations: 1e14,
            uses: vec![by(0, 0b01), by(1, 0b10)],
            item: 8,
        };
        let elements = (MIB / 8) as f64;
        assert!((ratio(&nest, MIB, 8.0 * (1e14 / elements - elements)) - 1.0).abs() < 1e-6);
    }
}
