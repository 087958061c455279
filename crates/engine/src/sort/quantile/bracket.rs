//! Between which keys the elements of given ranks lie, by what was noted of runs.

use outcore_kernels::sort::{count_less, count_less_equal, sort_keys, sort_workspace_bytes};

use super::runs::{QuantileRequest, Runs};

/// The notes of all runs.
pub(super) struct QuantileNotes<'a> {
    pub asked: &'a QuantileRequest,
    pub runs: Runs,
    /// Of (run, column), ascending.
    pub keys: &'a [u8],
    /// Elements of (run, column) that are not NaN.
    pub counts: Vec<u64>,
}

impl QuantileNotes<'_> {
    fn numbers(&self, run: usize, column: usize) -> u64 {
        self.counts[run * self.asked.columns() as usize + column]
    }

    /// The noted keys of a run's column that are numbers.
    fn of_run(&self, run: usize, column: usize) -> &[u8] {
        let (item, noted) = (self.asked.x.dtype.size(), self.runs.noted as usize);
        let place = (run * self.asked.columns() as usize + column) * noted * item;
        let count = self.numbers(run, column).div_ceil(self.runs.stride) as usize;
        &self.keys[place..place + count * item]
    }

    fn runs(&self) -> usize {
        self.runs.count(self.asked) as usize
    }

    /// Elements of a run's column before so many noted keys, at most.
    fn most(&self, run: usize, column: usize, noted: usize) -> u64 {
        (noted as u64 * self.runs.stride).min(self.numbers(run, column))
    }

    /// Elements of a run's column up to the last of so many noted keys.
    fn least(&self, noted: usize) -> u64 {
        (noted as u64)
            .checked_sub(1)
            .map_or(0, |before| before * self.runs.stride + 1)
    }

    /// Elements that come before a key, at most.
    fn below_most(&self, column: usize, key: &[u8]) -> u64 {
        let below = |run| count_less(self.asked.order, self.of_run(run, column), key);
        (0..self.runs()).map(|run| self.most(run, column, below(run))).sum()
    }

    /// Elements that come before a key or equal it, at least.
    fn up_to_least(&self, column: usize, key: &[u8]) -> u64 {
        let up_to = |run| count_less_equal(self.asked.order, self.of_run(run, column), key);
        (0..self.runs()).map(|run| self.least(up_to(run))).sum()
    }

    /// Elements of a run that come strictly between two keys, at most.
    fn inside_most(&self, run: usize, column: usize, low: &[u8], high: Option<&[u8]>) -> u64 {
        let keys = self.of_run(run, column);
        let up_to = count_less_equal(self.asked.order, keys, low);
        let end = match high {
            Some(high) => self.most(run, column, count_less(self.asked.order, keys, high)),
            None => self.numbers(run, column),
        };
        end.saturating_sub(self.least(up_to))
    }
}

/// The keys between which one element lies.
#[derive(Clone, Debug, Default)]
pub(super) struct Bracket {
    /// The ranks on both sides of the place, and how far it is from the first to the second.
    pub ranks: [u64; 2],
    pub between: f64,
    /// It comes not before this key; none where the column has no numbers.
    pub low: Option<Vec<u8>>,
    /// Nor behind this one, if any.
    pub high: Option<Vec<u8>>,
}

/// The brackets of (column, fraction), and how many elements of each run may lie inside.
#[derive(Clone, Debug)]
pub(super) struct Brackets {
    pub all: Vec<Bracket>,
    /// Of (run, column, fraction).
    pub inside: Vec<u64>,
    /// Elements of each column that are not NaN.
    pub numbers: Vec<u64>,
}

impl Brackets {
    pub fn total(&self) -> u64 {
        self.inside.iter().sum()
    }

    /// As many elements as there can be where keys differ.
    pub fn assumed(asked: &QuantileRequest, runs: Runs) -> Brackets {
        let places = asked.columns() as usize * asked.fractions.len();
        let most = |run| (2 * runs.stride).min(runs.rows(asked, run));
        Brackets {
            all: vec![Bracket::default(); places],
            inside: (0..runs.count(asked)).flat_map(|run| vec![most(run); places]).collect(),
            numbers: vec![0; asked.columns() as usize],
        }
    }
}

pub(super) fn bracket(noted: &QuantileNotes<'_>) -> Brackets {
    let asked = noted.asked;
    let columns = asked.columns() as usize;
    let numbers = |column| (0..noted.runs()).map(|run| noted.numbers(run, column)).sum::<u64>();
    let numbers: Vec<u64> = (0..columns).map(numbers).collect();
    let mut all = Vec::with_capacity(columns * asked.fractions.len());
    for (column, &count) in numbers.iter().enumerate() {
        let candidates = candidates(noted, column);
        for &fraction in &asked.fractions {
            all.push(find(noted, column, count, fraction, &candidates));
        }
    }
    let mut inside = Vec::with_capacity(noted.runs() * all.len());
    for run in 0..noted.runs() {
        for (place, bracket) in all.iter().enumerate() {
            let column = place / asked.fractions.len();
            let most = |low: &Vec<u8>| noted.inside_most(run, column, low, bracket.high.as_deref());
            inside.push(bracket.low.as_ref().map_or(0, most));
        }
    }
    Brackets { all, inside, numbers }
}

/// The noted keys of all runs of a column, in order.
fn candidates(noted: &QuantileNotes<'_>, column: usize) -> Vec<u8> {
    let parts: Vec<&[u8]> = (0..noted.runs()).map(|run| noted.of_run(run, column)).collect();
    // As words, so that they are aligned for every type.
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let order = noted.asked.order;
    let spare = sort_workspace_bytes(order, bytes / noted.asked.x.dtype.size());
    let (mut keys, mut spare) = (vec![0u64; bytes.div_ceil(8)], vec![0u64; spare.div_ceil(8)]);
    let keys = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut keys)[..bytes];
    let mut at = 0;
    for part in parts {
        keys[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    sort_keys(order, keys, bytemuck::cast_slice_mut(&mut spare));
    keys.to_vec()
}

fn find(noted: &QuantileNotes<'_>, column: usize, count: u64, fraction: f64, candidates: &[u8]) -> Bracket {
    let item = noted.asked.x.dtype.size();
    let Some(last) = count.checked_sub(1) else {
        return Bracket::default();
    };
    let place = fraction * last as f64;
    let first = (place.floor() as u64).min(last);
    let ranks = [first, (first + 1).min(last)];
    let key = |at: usize| &candidates[at * item..(at + 1) * item];
    let all = candidates.len() / item;
    // The smallest key of all is noted: nothing comes before it.
    let low = first_where(all, |at| noted.below_most(column, key(at)) > ranks[0]).saturating_sub(1);
    let high = first_where(all, |at| noted.up_to_least(column, key(at)) > ranks[1]);
    Bracket {
        ranks,
        between: place - first as f64,
        low: Some(key(low).to_vec()),
        high: (high < all).then(|| key(high).to_vec()),
    }
}

/// The first of `0 .. count` for which something holds that holds for all behind it; `count` where for none.
fn first_where(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
