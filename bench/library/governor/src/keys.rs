//! Keys that are the same, in the same order, in every program that is compared. bench/library/keys.h is the same in C++.

/// Spreads numbers: no two have the same result (the finalizer of SplitMix64).
pub fn mix(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d049bb133111eb);
    x ^ (x >> 31)
}

const PREFIX: &[u8] = b"user-";
const KEY_BYTES: usize = PREFIX.len() + 16;

/// Writes key number `i` ("user-" and 16 hexadecimal digits) over `key`. Cheap, so that ten million keys need not lie in
/// memory beside what is measured.
pub fn write_key(i: u64, key: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut number = mix(i);
    let mut bytes = std::mem::take(key).into_bytes();
    bytes.resize(KEY_BYTES, 0);
    bytes[..PREFIX.len()].copy_from_slice(PREFIX);
    for byte in &mut bytes[PREFIX.len()..] {
        *byte = DIGITS[(number >> 60) as usize];
        number <<= 4;
    }
    *key = unsafe { String::from_utf8_unchecked(bytes) };
}

pub fn string_keys(count: u64) -> Vec<String> {
    (0..count)
        .map(|i| {
            let mut key = String::with_capacity(KEY_BYTES);
            write_key(i, &mut key);
            key
        })
        .collect()
}

/// 0 … count − 1 shuffled; another number, another order.
pub fn shuffled(count: u32, number: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    for i in (1..count).rev() {
        let other = mix(u64::from(number) << 32 | u64::from(i)) % (u64::from(i) + 1);
        order.swap(i as usize, other as usize);
    }
    order
}

/// Goes through 0 … count − 1 again and again.
pub struct Turn {
    at: usize,
    count: usize,
}

impl Turn {
    pub fn new(count: usize, first: usize) -> Turn {
        Turn { at: first, count }
    }

    #[inline(always)]
    pub fn next(&mut self) -> usize {
        let now = self.at;
        self.at = if self.at + 1 == self.count { 0 } else { self.at + 1 };
        now
    }
}
