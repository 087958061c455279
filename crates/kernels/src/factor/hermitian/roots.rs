//! Roots of the secular equation 1 ÷ ρ + Σ z² ÷ (d − λ) = 0, each as a pole and a distance from it, and what follows from them.
//!
//! Bunch, Nielsen and Sorensen (1978), "Rank-one modification of the symmetric eigenproblem", section 3, with bisection where an
//! interpolation leaves its bracket; Gu and Eisenstat (1995), section 3: z of the matrix that has the computed roots exactly.

use crate::fence::shells::NumbersBody;

const LANES: usize = 8;

/// SideSums over the poles up to one and behind it, and their derivatives.
#[derive(Clone, Copy, Debug)]
struct SideSums {
    left: [f64; 2],
    right: [f64; 2],
}

/// Of poles and z, and an origin and a distance from it, the sum there and its derivative.
struct SecularSums;

impl NumbersBody for SecularSums {
    #[inline(always)]
    fn run(arrays: &[&[f64]], numbers: &[f64], out: &mut [f64]) {
        let (&[poles, z], &[origin, distance]) = (arrays, numbers) else {
            return;
        };
        let mut sums = [[0.0; LANES]; 2];
        let (pole_lanes, z_lanes) = (poles.chunks_exact(LANES), z.chunks_exact(LANES));
        let mut last = [0.0; 2];
        for (&pole, &z) in pole_lanes.remainder().iter().zip(z_lanes.remainder()) {
            let share = z / ((pole - origin) - distance);
            last[0] += z * share;
            last[1] += share * share;
        }
        for (poles, z) in pole_lanes.zip(z_lanes) {
            for lane in 0..LANES {
                let share = z[lane] / ((poles[lane] - origin) - distance);
                sums[0][lane] += z[lane] * share;
                sums[1][lane] += share * share;
            }
        }
        for (out, (lanes, last)) in out.iter_mut().zip(sums.iter().zip(last)) {
            *out = lanes.iter().sum::<f64>() + last;
        }
    }
}

/// The secular equation of poles in ascending order.
pub(super) struct Secular<'a> {
    pub poles: &'a [f64],
    pub z: &'a [f64],
    pub inverse_rho: f64,
}

impl Secular<'_> {
    fn sums(&self, root: usize, origin: f64, distance: f64) -> SideSums {
        let kernel = SecularSums::kernel();
        let of = |own: std::ops::Range<usize>| {
            let mut sums = [0.0; 2];
            kernel(
                &[&self.poles[own.clone()], &self.z[own]],
                &[origin, distance],
                &mut sums,
            );
            sums
        };
        // Behind the last pole there is none: its own term takes that place.
        let split = (root + 1).min(self.poles.len() - 1);
        SideSums {
            left: of(0..split),
            right: of(split..self.poles.len()),
        }
    }

    fn value(&self, sums: &SideSums) -> f64 {
        self.inverse_rho + sums.left[0] + sums.right[0]
    }

    /// The root behind a pole: the pole it is counted from, and how far it is.
    pub fn root(&self, root: usize) -> (f64, f64) {
        let count = self.poles.len();
        if count == 1 {
            let distance = self.z[0] * self.z[0] / self.inverse_rho;
            return (self.poles[0], distance);
        }
        let pole = self.poles[root];
        let (origin, mut low, mut high) = if root + 1 == count {
            let squares: f64 = self.z.iter().map(|z| z * z).sum();
            (pole, 0.0, squares / self.inverse_rho * (1.0 + 1e-12))
        } else {
            let gap = self.poles[root + 1] - pole;
            match self.value(&self.sums(root, pole, gap / 2.0)) >= 0.0 {
                true => (pole, 0.0, gap / 2.0),
                false => (self.poles[root + 1], -gap / 2.0, 0.0),
            }
        };
        let ends = if root + 1 == count {
            [self.poles[root - 1] - origin, 0.0]
        } else {
            [pole - origin, self.poles[root + 1] - origin]
        };
        let mut at = (low + high) / 2.0;
        for _ in 0..MOST {
            let sums = self.sums(root, origin, at);
            let value = self.value(&sums);
            let rounding = self.inverse_rho
                + 8.0 * (sums.left[0].abs() + sums.right[0].abs())
                + at.abs() * (sums.left[1] + sums.right[1]);
            if value.abs() <= f64::EPSILON * rounding {
                break;
            }
            // The function grows between two poles.
            if value < 0.0 {
                low = at;
            } else {
                high = at;
            }
            let next = interpolated(self.inverse_rho, &sums, ends, at, [low, high]);
            let next = next.unwrap_or_else(|| middle(low, high));
            if next == at || (high - low).abs() <= f64::EPSILON * low.abs().min(high.abs()) {
                break;
            }
            at = next;
        }
        (origin, at)
    }
}

/// Steps of a root. Bisection alone would be done.
const MOST: usize = 400;

/// Between two distances of a sign: by their size where they are far apart.
fn middle(low: f64, high: f64) -> f64 {
    let (least, most) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
    let size = if least == 0.0 {
        most / 1024.0
    } else if most > 4.0 * least {
        (least.sqrt()) * (most.sqrt())
    } else {
        return low + (high - low) / 2.0;
    };
    if low < 0.0 || high < 0.0 {
        -size
    } else {
        size
    }
}

/// The root between the bounds of c + q ÷ (a − x) + s ÷ (b − x), which has the values and derivatives of both sums.
fn interpolated(inverse_rho: f64, sums: &SideSums, [a, b]: [f64; 2], at: f64, [low, high]: [f64; 2]) -> Option<f64> {
    let [left, right] = [a - at, b - at];
    let q = sums.left[1] * left * left;
    let s = sums.right[1] * right * right;
    let c = inverse_rho + (sums.left[0] - sums.left[1] * left) + (sums.right[0] - sums.right[1] * right);
    let half = (c * (a + b) + q + s) / 2.0;
    let constant = c * a * b + q * b + s * a;
    let root = (half * half - c * constant).max(0.0).sqrt();
    let larger = if half >= 0.0 { half + root } else { half - root };
    [larger / c, constant / larger]
        .into_iter()
        .find(|&x| x > low && x < high && x.is_finite())
}

/// Of poles, and origins and distances of as many roots, and a pole, the product of the roots' distances from it by those of the
/// poles.
struct RootProduct;

impl NumbersBody for RootProduct {
    #[inline(always)]
    fn run(arrays: &[&[f64]], numbers: &[f64], out: &mut [f64]) {
        let (&[poles, origins, distances], &[pole]) = (arrays, numbers) else {
            return;
        };
        let (origins, distances) = (&origins[..poles.len()], &distances[..poles.len()]);
        let mut products = [1.0; LANES];
        let whole = poles.len() / LANES * LANES;
        for start in (0..whole).step_by(LANES) {
            for lane in 0..LANES {
                let at = start + lane;
                products[lane] *= ((origins[at] - pole) + distances[at]) / (poles[at] - pole);
            }
        }
        let mut product: f64 = products.iter().product();
        for at in whole..poles.len() {
            product *= ((origins[at] - pole) + distances[at]) / (poles[at] - pole);
        }
        out[0] = product;
    }
}

/// The size of z of a pole, up to a factor of all, for which the roots are exact.
pub(super) fn exact_z(poles: &[f64], [origins, distances]: [&[f64]; 2], at: usize) -> f64 {
    let (count, pole, kernel) = (poles.len(), poles[at], RootProduct::kernel());
    let mut product = (origins[count - 1] - pole) + distances[count - 1];
    // Roots before the pole go with the poles before it, those from it on with the poles behind.
    for (roots, own) in [(0..at, 0..at), (at..count - 1, at + 1..count)] {
        let mut ratio = [1.0];
        let arrays = [&poles[own], &origins[roots.clone()], &distances[roots]];
        kernel(&arrays, &[pole], &mut ratio);
        product *= ratio[0];
    }
    product.abs().sqrt()
}

/// Of poles, z and a second row, and a root's origin and distance, the sum of squares of its vector and the product with the row of
/// each half.
pub(super) struct VectorSums;

impl NumbersBody for VectorSums {
    #[inline(always)]
    fn run(arrays: &[&[f64]], numbers: &[f64], out: &mut [f64]) {
        let (&[poles, z, first, last], &[origin, distance]) = (arrays, numbers) else {
            return;
        };
        let (z, first, last) = (&z[..poles.len()], &first[..poles.len()], &last[..poles.len()]);
        let mut sums = [[0.0; LANES]; 3];
        let whole = poles.len() / LANES * LANES;
        for start in (0..whole).step_by(LANES) {
            for lane in 0..LANES {
                let at = start + lane;
                let element = z[at] / ((poles[at] - origin) - distance);
                sums[0][lane] += element * element;
                sums[1][lane] += element * first[at];
                sums[2][lane] += element * last[at];
            }
        }
        let mut rest = [0.0; 3];
        for at in whole..poles.len() {
            let element = z[at] / ((poles[at] - origin) - distance);
            rest[0] += element * element;
            rest[1] += element * first[at];
            rest[2] += element * last[at];
        }
        for (out, (lanes, rest)) in out.iter_mut().zip(sums.iter().zip(rest)) {
            *out = lanes.iter().sum::<f64>() + rest;
        }
    }
}

/// Of poles and z, and a root's origin, distance and scale, elements of its vector.
pub(super) struct VectorElements;

impl NumbersBody for VectorElements {
    #[inline(always)]
    fn run(arrays: &[&[f64]], numbers: &[f64], out: &mut [f64]) {
        let (&[poles, z], &[origin, distance, scale]) = (arrays, numbers) else {
            return;
        };
        for ((out, &pole), &z) in out.iter_mut().zip(poles).zip(z) {
            *out = z / ((pole - origin) - distance) * scale;
        }
    }
}
