use outcore_dtype::DType;
use outcore_kernels::Panel;
use std::time::Instant;
fn bytes(n: usize) -> Vec<u8> {
    let v: Vec<f64> = (0..n).map(|i| ((i * 7919) % 1000) as f64 / 1000.0).collect();
    bytemuck::cast_slice(&v).to_vec()
}
fn time(name: &str, flops: f64, mut f: impl FnMut()) {
    f();
    let mut best = f64::MAX;
    for _ in 0..7 {
        let t = Instant::now();
        f();
        best = best.min(t.elapsed().as_secs_f64());
    }
    println!("{name}: {:.3} ms {:.1} Gflop/s", best * 1e3, flops / best / 1e9);
}
fn spd(n: usize) -> Vec<u8> {
    let mut v = vec![0.0f64; n * n];
    for i in 0..n {
        for j in 0..n {
            v[i * n + j] = if i == j { n as f64 } else { 0.3 };
        }
    }
    bytemuck::cast_slice(&v).to_vec()
}
fn main() {
    let p = Panel::new(DType::F64).unwrap();
    for n in [64usize, 128, 256, 512] {
        let (a, b, mut c) = (bytes(n * n), bytes(n * n), bytes(n * n));
        let f = n as f64;
        time(&format!("product {n}"), 2.0 * f * f * f, || {
            p.subtract_product([n, n, n], &a, &b, &mut c)
        });
        time(&format!("square {n}"), f * f * f, || {
            p.subtract_square([n, n], &a, &mut c)
        });
        let l = spd(n);
        let mut x = bytes(n * n);
        time(&format!("solve_right {n}"), f * f * f, || {
            p.solve_right([n, n], &l, &mut x)
        });
        let mut w = vec![0u8; p.factor_bytes(n)];
        time(&format!("factorize {n}"), f * f * f / 3.0, || {
            let mut a = spd(n);
            p.factorize(n, &mut a, &mut w).unwrap();
        });
    }
    for (f, q) in [
        (20, 4),
        (40, 10),
        (100, 10),
        (100, 30),
        (200, 20),
        (200, 60),
        (400, 100),
        (900, 300),
    ] {
        let a = spd(f);
        let mut x = a.clone();
        let mut w = vec![0u8; p.elimination_bytes(q)];
        let fl: f64 = (0..q).map(|i| ((f - i) as f64).powi(2)).sum();
        time(&format!("eliminate {f} {q}"), fl, || {
            x.copy_from_slice(&a);
            p.eliminate([f, q], &mut x, &mut w).unwrap();
        });
    }
}
