//! Numbers in few bytes: seven bits in each, the low ones first.

/// Appends a number.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The number whose bytes come next: whole ones were put there.
pub(crate) fn get(next: &mut impl FnMut() -> Option<u8>) -> u32 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = next().expect("numbers that were put are whole");
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return number;
        }
        shift += 7;
    }
}
