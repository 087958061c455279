//! Structural digests: what a node computes, in 128 bits that are the same in every process.
//!
//! A digest is taken over a canonical encoding of the operator, the digests of the inputs, shape, element type and tile.
//! Stored arrays enter by their identity (path and stamp). Arrays in memory and functions of the user are equal to
//! themselves only, within their process: their identity carries what tells processes apart.

use outcore_dtype::Scalar;
use outcore_kernels::Generator;

/// What a node computes. Equal digests hold equal bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Of bytes as they are.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(murmur3(bytes))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

/// Bytes in which no two different sequences of parts are alike: whatever has a length says it first.
#[derive(Default)]
pub struct Encoding(pub(super) Vec<u8>);

impl Encoding {
    pub fn word(&mut self, value: u64) -> &mut Encoding {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn words(&mut self, values: impl ExactSizeIterator<Item = u64>) -> &mut Encoding {
        self.word(values.len() as u64);
        values.for_each(|value| {
            self.word(value);
        });
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Encoding {
        self.word(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    pub fn float(&mut self, value: f64) -> &mut Encoding {
        self.word(value.to_bits())
    }

    pub(super) fn keyed(&mut self, name: &str, key: &[u8], index: usize) -> &mut Encoding {
        self.text(name).word(key.len() as u64);
        self.0.extend_from_slice(key);
        self.word(index as u64)
    }

    pub(super) fn axes(&mut self, axes: &[usize]) -> &mut Encoding {
        self.words(axes.iter().map(|&axis| axis as u64))
    }

    fn scalar(&mut self, value: Scalar) -> &mut Encoding {
        match value {
            Scalar::Bool(value) => self.text("bool").word(u64::from(value)),
            Scalar::Int(value) => self.text("int").word(value as u64),
            Scalar::UInt(value) => self.text("uint").word(value),
            Scalar::Float(value) => self.text("float").float(value),
            Scalar::Complex(re, im) => self.text("complex").float(re).float(im),
        }
    }

    pub(super) fn generator(&mut self, generator: &Generator) -> &mut Encoding {
        match *generator {
            Generator::Arange { start, step } => self.text("arange").scalar(start).scalar(step),
            Generator::Linspace {
                start,
                stop,
                count,
                endpoint,
            } => {
                self.text("linspace").float(start).float(stop);
                self.word(count).word(u64::from(endpoint))
            }
            Generator::Eye { k } => self.text("eye").word(k as u64),
            Generator::Uniform { seed, low, high } => self.text("uniform").word(seed).float(low).float(high),
            Generator::Normal { seed, mean, deviation } => self.text("normal").word(seed).float(mean).float(deviation),
            Generator::Integers { seed, low, high } => {
                self.text("integers").word(seed).word(low as u64).word(high as u64)
            }
            Generator::Full(value) => self.text("full").scalar(value),
        }
    }

    pub fn digest(&self) -> Digest {
        Digest(murmur3(&self.0))
    }
}

/// MurmurHash3, the variant of 128 bits for 64-bit machines (Appleby 2011), with seed 0.
fn murmur3(bytes: &[u8]) -> [u8; 16] {
    const C: [u64; 2] = [0x87c3_7b91_1142_53d5, 0x4cf5_ad43_2745_937f];
    let first = |k: u64| k.wrapping_mul(C[0]).rotate_left(31).wrapping_mul(C[1]);
    let second = |k: u64| k.wrapping_mul(C[1]).rotate_left(33).wrapping_mul(C[0]);
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let (mut h1, mut h2) = (0u64, 0u64);
    let mut blocks = bytes.chunks_exact(16);
    for block in &mut blocks {
        h1 ^= first(word(&block[..8]));
        h1 = h1
            .rotate_left(27)
            .wrapping_add(h2)
            .wrapping_mul(5)
            .wrapping_add(0x52dc_e729);
        h2 ^= second(word(&block[8..]));
        h2 = h2
            .rotate_left(31)
            .wrapping_add(h1)
            .wrapping_mul(5)
            .wrapping_add(0x3849_5ab5);
    }
    let rest = blocks.remainder();
    h2 ^= second(word(&rest[rest.len().min(8)..]));
    h1 ^= first(word(&rest[..rest.len().min(8)]));
    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (mixed(h1), mixed(h2));
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    let mut hash = [0; 16];
    hash[..8].copy_from_slice(&h1.to_be_bytes());
    hash[8..].copy_from_slice(&h2.to_be_bytes());
    hash
}

/// The finalizer: every bit of the input reaches every bit of the output.
fn mixed(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let known = [
            ("", "00000000000000000000000000000000"),
            ("hello", "cbd8a7b341bd9b025b1e906a48ae1d19"),
            (
                "The quick brown fox jumps over the lazy dog",
                "e34bbc7bbc071b6c7a433ca9c49a9347",
            ),
        ];
        for (text, hash) in known {
            assert_eq!(format!("{:?}", Digest(murmur3(text.as_bytes()))), hash, "{text}");
        }
    }

    #[test]
    fn parts_that_read_alike_are_encoded_apart() {
        let digest = |parts: &[&str]| {
            let mut encoding = Encoding::default();
            parts.iter().for_each(|part| {
                encoding.text(part);
            });
            encoding.digest()
        };
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_ne!(digest(&["ab"]), digest(&["ab", ""]));
    }
}
