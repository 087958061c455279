//! Fill values: from JSON to the bytes of one element (Zarr v3, "Permitted fill values").

use outcore_dtype::{f16, DType};
use serde_json::Value;

/// One element in native order; nothing where the value is none of the type.
pub(super) fn fill_bytes(dtype: DType, value: &Value) -> Option<Vec<u8>> {
    let signed = || value.as_i64();
    let unsigned = || value.as_u64();
    Some(match dtype {
        DType::Bool => vec![u8::from(value.as_bool()?)],
        DType::I8 => i8::try_from(signed()?).ok()?.to_ne_bytes().to_vec(),
        DType::I16 => i16::try_from(signed()?).ok()?.to_ne_bytes().to_vec(),
        DType::I32 => i32::try_from(signed()?).ok()?.to_ne_bytes().to_vec(),
        DType::I64 => signed()?.to_ne_bytes().to_vec(),
        DType::U8 => u8::try_from(unsigned()?).ok()?.to_ne_bytes().to_vec(),
        DType::U16 => u16::try_from(unsigned()?).ok()?.to_ne_bytes().to_vec(),
        DType::U32 => u32::try_from(unsigned()?).ok()?.to_ne_bytes().to_vec(),
        DType::U64 => unsigned()?.to_ne_bytes().to_vec(),
        DType::F16 => half(value)?.to_ne_bytes().to_vec(),
        DType::F32 => single(value)?.to_ne_bytes().to_vec(),
        DType::F64 => double(value)?.to_ne_bytes().to_vec(),
        DType::C64 => {
            let (re, im) = parts(value)?;
            [single(re)?.to_ne_bytes(), single(im)?.to_ne_bytes()].concat()
        }
        DType::C128 => {
            let (re, im) = parts(value)?;
            [double(re)?.to_ne_bytes(), double(im)?.to_ne_bytes()].concat()
        }
    })
}

/// The real and the imaginary part.
fn parts(value: &Value) -> Option<(&Value, &Value)> {
    match value.as_array()?.as_slice() {
        [re, im] => Some((re, im)),
        _ => None,
    }
}

fn half(value: &Value) -> Option<f16> {
    real(value, f16::from_f64, |bits| f16::from_bits(bits as u16), 2)
}

fn single(value: &Value) -> Option<f32> {
    real(value, |number| number as f32, |bits| f32::from_bits(bits as u32), 4)
}

fn double(value: &Value) -> Option<f64> {
    real(value, |number| number, f64::from_bits, 8)
}

/// A number, `"Infinity"`, `"-Infinity"`, `"NaN"` with the bits of the quiet NaN without a sign, or `"0x"` and all bits.
fn real<T>(value: &Value, rounded: impl Fn(f64) -> T, of_bits: impl Fn(u64) -> T, bytes: usize) -> Option<T> {
    let Some(text) = value.as_str() else {
        return value.as_f64().map(rounded);
    };
    match text {
        "Infinity" => Some(rounded(f64::INFINITY)),
        "-Infinity" => Some(rounded(f64::NEG_INFINITY)),
        "NaN" => Some(rounded(f64::NAN)),
        _ => {
            let digits = text.strip_prefix("0x")?;
            let whole = digits.len() == 2 * bytes && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            whole.then(|| u64::from_str_radix(digits, 16).ok())?.map(of_bits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fill_bytes;
    use outcore_dtype::DType;
    use serde_json::json;

    #[test]
    fn fill_values_have_the_bits_of_the_specification() {
        let cases = [
            (DType::Bool, json!(true), 1),
            (DType::I8, json!(-128), 0x80),
            (DType::U64, json!(u64::MAX), u64::MAX),
            (DType::F16, json!(1e9), 0x7c00),
            (DType::F16, json!("NaN"), 0x7e00),
            (DType::F16, json!("0x1234"), 0x1234),
            (DType::F32, json!(0.1), 0x3dcc_cccd),
            (DType::F32, json!("NaN"), 0x7fc0_0000),
            (DType::F32, json!("-Infinity"), 0xff80_0000),
            (DType::F32, json!("0x7fc00001"), 0x7fc0_0001),
            (DType::F64, json!(i64::MIN), 0xc3e0_0000_0000_0000),
            (DType::F64, json!("NaN"), 0x7ff8_0000_0000_0000),
            (DType::C64, json!([1, "Infinity"]), 0x7f80_0000_3f80_0000),
        ];
        for (dtype, value, bits) in cases {
            let bytes = &u64::to_ne_bytes(bits)[..dtype.size()];
            assert_eq!(fill_bytes(dtype, &value).as_deref(), Some(bytes), "{dtype} {value}");
        }
    }

    #[test]
    fn values_of_other_types_are_refused() {
        let cases = [
            (DType::Bool, json!(1)),
            (DType::I8, json!(128)),
            (DType::I64, json!(1.0)),
            (DType::U8, json!(-1)),
            (DType::F32, json!("0x7fc000")),
            (DType::F32, json!("0x+1234567")),
            (DType::F64, json!(null)),
            (DType::C128, json!(1.0)),
            (DType::C128, json!([1.0, 2.0, 3.0])),
        ];
        for (dtype, value) in cases {
            assert_eq!(fill_bytes(dtype, &value), None, "{dtype} {value}");
        }
    }
}
