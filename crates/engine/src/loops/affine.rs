//! Affine functions of loop counters, and boxes of counters.

/// Loops around a statement at most.
pub(super) const DEPTH_MAX: usize = 8;
/// Constants and coefficients are smaller than this, so sums of products stay within 128 bits everywhere.
const WORD_MAX: i64 = 1 << 53;

/// One counter for each loop around a statement, the outermost first.
pub(super) type LoopCounters = [i64; DEPTH_MAX];

/// The counters from `low` to `high`, both included; none where `high` is below `low`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct CounterRange {
    pub low: i64,
    pub high: i64,
}

impl CounterRange {
    pub fn is_empty(self) -> bool {
        self.high < self.low
    }

    pub fn length(self) -> i64 {
        (self.high - self.low + 1).max(0)
    }
}

/// A range of counters for each loop.
pub(super) type CounterBox = [CounterRange; DEPTH_MAX];

/// A constant, and a coefficient for the counter of each loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Affine {
    pub constant: i64,
    pub coefficients: LoopCounters,
}

impl Affine {
    pub fn at(&self, counters: &LoopCounters) -> i64 {
        let products = self.coefficients.iter().zip(counters).map(|(by, at)| by * at);
        self.constant + products.sum::<i64>()
    }

    /// This less so many times another; nothing where numbers grow beyond 64 bits.
    pub fn less(&self, by: i64, other: &Affine) -> Option<Affine> {
        let mut less = *self;
        less.constant = less.constant.checked_sub(by.checked_mul(other.constant)?)?;
        for (to, &coefficient) in less.coefficients.iter_mut().zip(&other.coefficients) {
            *to = to.checked_sub(by.checked_mul(coefficient)?)?;
        }
        Some(less)
    }

    /// The depth of the loop whose counter it follows one by one, where it follows no other.
    pub fn single_loop(&self) -> Option<usize> {
        let mut depths = (0..DEPTH_MAX).filter(|&depth| self.coefficients[depth] != 0);
        let depth = depths.next().filter(|&depth| self.coefficients[depth].abs() == 1)?;
        depths.next().is_none().then_some(depth)
    }

    /// By how much it grows with a step in a direction.
    pub fn along(&self, direction: &LoopCounters) -> i64 {
        self.coefficients
            .iter()
            .zip(direction)
            .map(|(by, step)| by * step)
            .sum()
    }

    /// Its least and its largest value over a box.
    pub fn range(&self, over: &CounterBox) -> CounterRange {
        let mut range = CounterRange {
            low: self.constant,
            high: self.constant,
        };
        for (&by, along) in self.coefficients.iter().zip(over).filter(|(by, _)| **by != 0) {
            let ends = [by * along.low, by * along.high];
            range.low += ends[0].min(ends[1]);
            range.high += ends[0].max(ends[1]);
        }
        range
    }

    /// Whether its values over a box are smaller than what is computed with.
    pub fn is_small(&self, over: &CounterBox) -> bool {
        let is_small = |value: i128| value.abs() < i128::from(WORD_MAX);
        let terms = self.coefficients.iter().zip(over);
        let most: i128 = terms
            .map(|(&by, along)| {
                let end = i128::from(along.low).abs().max(i128::from(along.high).abs());
                i128::from(by).abs() * end
            })
            .sum();
        is_small(most + i128::from(self.constant).abs())
    }

    /// Whether constant and coefficients are such as are computed with.
    pub fn has_small_words(&self) -> bool {
        let words = self.coefficients.iter().chain([&self.constant]);
        words.copied().all(|word| word.unsigned_abs() < WORD_MAX.unsigned_abs())
    }
}

/// Makes a box, where there is one so far, large enough for another.
pub(super) fn enclose(hull: &mut Option<CounterBox>, over: CounterBox) {
    for (range, more) in hull.get_or_insert(over).iter_mut().zip(over) {
        range.low = range.low.min(more.low);
        range.high = range.high.max(more.high);
    }
}

/// Makes a box smaller while the constraints, each at least 0, say so; false where no counters are left.
pub(super) fn tighten(over: &mut CounterBox, constraints: &[Affine]) -> bool {
    // Bounds reach from loop to loop, so as many rounds as there are loops see all of them.
    for _ in 0..DEPTH_MAX {
        let mut is_changed = false;
        for constraint in constraints {
            let most = constraint.range(over).high;
            if most < 0 {
                return false;
            }
            for (depth, &by) in constraint.coefficients.iter().enumerate().filter(|(_, by)| **by != 0) {
                let range = over[depth];
                // The others at their best: by * counter >= -others.
                let others = most - if by > 0 { by * range.high } else { by * range.low };
                let bound = if by > 0 {
                    CounterRange {
                        low: (-others).div_euclid(by) + i64::from((-others).rem_euclid(by) != 0),
                        high: range.high,
                    }
                } else {
                    CounterRange {
                        low: range.low,
                        high: others.div_euclid(-by),
                    }
                };
                let kept = CounterRange {
                    low: range.low.max(bound.low),
                    high: range.high.min(bound.high),
                };
                is_changed |= kept != range;
                over[depth] = kept;
                if kept.is_empty() {
                    return false;
                }
                if kept != range {
                    break;
                }
            }
        }
        if !is_changed {
            break;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affine(constant: i64, first: &[i64]) -> Affine {
        let mut coefficients = [0; DEPTH_MAX];
        coefficients[..first.len()].copy_from_slice(first);
        Affine { constant, coefficients }
    }

    #[test]
    fn boxes_shrink_to_what_constraints_allow() {
        let mut over = [CounterRange::default(); DEPTH_MAX];
        over[0] = CounterRange { low: 0, high: 9 };
        over[1] = CounterRange { low: 0, high: 9 };
        // j <= i - 3, 2 j >= 5.
        let constraints = [affine(-3, &[1, -1]), affine(-5, &[0, 2])];
        assert!(tighten(&mut over, &constraints));
        assert_eq!((over[0].low, over[0].high, over[1].low, over[1].high), (6, 9, 3, 6));
        assert!(!tighten(&mut over, &[affine(5, &[-1, 0])]));
    }

    #[test]
    fn ranges_take_the_ends_by_sign() {
        let mut over = [CounterRange::default(); DEPTH_MAX];
        over[0] = CounterRange { low: 1, high: 4 };
        over[1] = CounterRange { low: 0, high: 10 };
        let range = affine(2, &[3, -1]).range(&over);
        assert_eq!((range.low, range.high), (-5, 14));
    }
}
