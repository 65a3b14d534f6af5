//! Natural numbers of any length in limbs of nine decimal digits, the least
//! first; no limb of zero stands at the end. Decimal shifts, reading and
//! writing take linear time.

use std::cmp::Ordering;

/// Ten to the ninth: one more than the greatest limb.
pub(super) const BASE: u32 = 1_000_000_000;
const WIDE: u64 = BASE as u64;
/// Decimal digits of a limb.
pub(super) const DIGITS: usize = 9;

const POWERS: [u32; 10] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    BASE,
];

/// `n` below 2^32 as a limb and what is carried.
#[inline]
fn split(n: u64) -> (u32, u64) {
    ((n % WIDE) as u32, n / WIDE)
}

pub(super) fn trim(limbs: &mut Vec<u32>) {
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
}

pub(super) fn from_u128(mut n: u128) -> Vec<u32> {
    let mut limbs = Vec::with_capacity(5);
    while n > u128::from(u64::MAX) {
        limbs.push((n % u128::from(BASE)) as u32);
        n /= u128::from(BASE);
    }
    let mut n = n as u64;
    while n > 0 {
        let (limb, rest) = split(n);
        limbs.push(limb);
        n = rest;
    }
    limbs
}

pub(super) fn to_u128(limbs: &[u32]) -> Option<u128> {
    if limbs.len() > 5 {
        return None;
    }
    limbs.iter().rev().try_fold(0u128, |n, limb| {
        n.checked_mul(u128::from(BASE))?
            .checked_add(u128::from(*limb))
    })
}

/// How many decimal digits it has; none for zero.
pub(super) fn digits(limbs: &[u32]) -> usize {
    match limbs.last() {
        Some(top) => (limbs.len() - 1) * DIGITS + top.ilog10() as usize + 1,
        None => 0,
    }
}

/// The decimal digit with this weight.
pub(super) fn digit(limbs: &[u32], at: usize) -> u32 {
    limbs
        .get(at / DIGITS)
        .map_or(0, |limb| limb / POWERS[at % DIGITS] % 10)
}

/// How many zeros stand at its end.
pub(super) fn trailing_zeros(limbs: &[u32]) -> usize {
    let Some(at) = limbs.iter().position(|limb| *limb != 0) else {
        return 0;
    };
    let mut limb = limbs[at];
    let mut zeros = at * DIGITS;
    while limb.is_multiple_of(10) {
        limb /= 10;
        zeros += 1;
    }
    zeros
}

pub(super) fn compare(a: &[u32], b: &[u32]) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

pub(super) fn add(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut sum = Vec::with_capacity(long.len() + 1);
    let mut carry = 0;
    for (at, limb) in long.iter().enumerate() {
        let mut n = limb + short.get(at).copied().unwrap_or(0) + carry;
        carry = u32::from(n >= BASE);
        if n >= BASE {
            n -= BASE;
        }
        sum.push(n);
    }
    if carry > 0 {
        sum.push(carry);
    }
    sum
}

/// `a - b`, where `a` is not less.
pub(super) fn subtract(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut rest = Vec::with_capacity(a.len());
    let mut borrow = 0;
    for (at, limb) in a.iter().enumerate() {
        let taken = b.get(at).copied().unwrap_or(0) + borrow;
        borrow = u32::from(*limb < taken);
        rest.push((limb + borrow * BASE).wrapping_sub(taken));
    }
    trim(&mut rest);
    rest
}

pub(super) fn increment(limbs: &mut Vec<u32>) {
    for limb in limbs.iter_mut() {
        if *limb + 1 < BASE {
            *limb += 1;
            return;
        }
        *limb = 0;
    }
    limbs.push(1);
}

pub(super) fn multiply_small(limbs: &mut Vec<u32>, factor: u32) {
    let mut carry = 0;
    for limb in limbs.iter_mut() {
        (*limb, carry) = split(u64::from(*limb) * u64::from(factor) + carry);
    }
    while carry > 0 {
        let (limb, rest) = split(carry);
        limbs.push(limb);
        carry = rest;
    }
    trim(limbs);
}

/// Divides in place and gives the remainder; the divisor is not zero.
pub(super) fn divide_small(limbs: &mut Vec<u32>, divisor: u32) -> u32 {
    let mut rest = 0u64;
    for limb in limbs.iter_mut().rev() {
        let n = rest * WIDE + u64::from(*limb);
        *limb = (n / u64::from(divisor)) as u32;
        rest = n % u64::from(divisor);
    }
    trim(limbs);
    rest as u32
}

pub(super) fn multiply(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if short.is_empty() {
        return Vec::new();
    }
    let mut columns = vec![0u64; a.len() + b.len() + 1];
    // Sixteen products and what a carry left fit into a column.
    for (chunk, factors) in short.chunks(16).enumerate() {
        let start = chunk * 16;
        for (row, factor) in factors.iter().enumerate() {
            let factor = u64::from(*factor);
            for (column, limb) in columns[start + row..].iter_mut().zip(long) {
                *column += factor * u64::from(*limb);
            }
        }
        let mut carry = 0;
        for column in &mut columns[start..] {
            let n = *column + carry;
            carry = n / WIDE;
            *column = n % WIDE;
        }
    }
    let mut product: Vec<u32> = columns.into_iter().map(|column| column as u32).collect();
    trim(&mut product);
    product
}

/// Quotient and remainder; the divisor is not zero.
pub(super) fn divide(a: &[u32], b: &[u32]) -> (Vec<u32>, Vec<u32>) {
    if compare(a, b) == Ordering::Less {
        return (Vec::new(), a.to_vec());
    }
    if let [divisor] = b {
        let mut quotient = a.to_vec();
        let rest = divide_small(&mut quotient, *divisor);
        let rest = if rest == 0 { Vec::new() } else { vec![rest] };
        return (quotient, rest);
    }
    // The divisor's first limb is made at least half of the base, so that two
    // limbs give a quotient's limb that is at most two too great.
    let top = b[b.len() - 1];
    let scale = BASE / (top + 1);
    let (mut rest, mut divisor) = (a.to_vec(), b.to_vec());
    multiply_small(&mut divisor, scale);
    multiply_small(&mut rest, scale);
    let (n, m) = (divisor.len(), a.len() - b.len());
    rest.resize(a.len() + 1, 0);
    let mut quotient = vec![0; m + 1];
    let (first, second) = (u64::from(divisor[n - 1]), u64::from(divisor[n - 2]));
    for at in (0..=m).rev() {
        let head = u64::from(rest[at + n]) * WIDE + u64::from(rest[at + n - 1]);
        let (mut guess, mut over) = (head / first, head % first);
        while guess >= WIDE || guess * second > over * WIDE + u64::from(rest[at + n - 2]) {
            guess -= 1;
            over += first;
            if over >= WIDE {
                break;
            }
        }
        if guess == 0 {
            continue;
        }
        let mut carry = 0u64;
        let mut borrow = 0u32;
        for (limb, part) in rest[at..].iter_mut().zip(&divisor) {
            let (low, high) = split(guess * u64::from(*part) + carry);
            carry = high;
            let taken = low + borrow;
            borrow = u32::from(*limb < taken);
            *limb = (*limb + borrow * BASE) - taken;
        }
        let taken = carry as u32 + borrow;
        let short = rest[at + n] < taken;
        rest[at + n] = rest[at + n].wrapping_sub(taken);
        if short {
            // The guess was one too great.
            guess -= 1;
            let mut carry = 0;
            for (limb, part) in rest[at..].iter_mut().zip(&divisor) {
                let sum = *limb + part + carry;
                carry = u32::from(sum >= BASE);
                *limb = if sum >= BASE { sum - BASE } else { sum };
            }
            rest[at + n] = rest[at + n].wrapping_add(carry);
        }
        quotient[at] = guess as u32;
    }
    trim(&mut quotient);
    trim(&mut rest);
    divide_small(&mut rest, scale);
    (quotient, rest)
}

/// Times a power of ten.
pub(super) fn shift_left(limbs: &[u32], places: usize) -> Vec<u32> {
    if limbs.is_empty() {
        return Vec::new();
    }
    let mut shifted = Vec::with_capacity(limbs.len() + places / DIGITS + 1);
    shifted.resize(places / DIGITS, 0);
    let factor = u64::from(POWERS[places % DIGITS]);
    let mut carry = 0;
    for limb in limbs {
        let (low, high) = split(u64::from(*limb) * factor + carry);
        shifted.push(low);
        carry = high;
    }
    if carry > 0 {
        shifted.push(carry as u32);
    }
    shifted
}

/// By a power of ten, without what falls off.
pub(super) fn shift_right(limbs: &[u32], places: usize) -> Vec<u32> {
    let skip = places / DIGITS;
    if skip >= limbs.len() {
        return Vec::new();
    }
    let mut shifted = limbs[skip..].to_vec();
    if !places.is_multiple_of(DIGITS) {
        divide_small(&mut shifted, POWERS[places % DIGITS]);
    }
    shifted
}

/// By a power of ten, rounded; a half goes up.
pub(super) fn round_right(limbs: &[u32], places: usize) -> Vec<u32> {
    let mut shifted = shift_right(limbs, places);
    if places > 0 && digit(limbs, places - 1) >= 5 {
        increment(&mut shifted);
    }
    shifted
}

/// The whole part of the square root.
pub(super) fn square_root(n: &[u32]) -> Vec<u32> {
    if let (true, Some(small)) = (n.len() <= 4, to_u128(n)) {
        return from_u128(small.isqrt());
    }
    // The root of the first half of the limbs, one more, is a guess from above.
    let skip = n.len() / 4;
    let mut guess = square_root(&n[2 * skip..]);
    increment(&mut guess);
    guess.splice(0..0, std::iter::repeat_n(0, skip));
    loop {
        let mut next = add(&guess, &divide(n, &guess).0);
        divide_small(&mut next, 2);
        if compare(&next, &guess) != Ordering::Less {
            return guess;
        }
        guess = next;
    }
}

/// Of decimal digits, the greatest first.
pub(super) fn from_digits(digits: impl DoubleEndedIterator<Item = u8>, count: usize) -> Vec<u32> {
    let mut limbs = Vec::with_capacity(count / DIGITS + 1);
    let (mut limb, mut power) = (0, 0);
    for digit in digits.rev() {
        limb += u32::from(digit) * POWERS[power];
        power += 1;
        if power == DIGITS {
            limbs.push(limb);
            (limb, power) = (0, 0);
        }
    }
    limbs.push(limb);
    trim(&mut limbs);
    limbs
}

/// Its decimal digits as characters, the greatest first; none for zero.
pub(super) fn to_digits(limbs: &[u32]) -> Vec<u8> {
    let length = digits(limbs);
    let mut text = vec![b'0'; limbs.len() * DIGITS];
    for (limb, chunk) in limbs.iter().rev().zip(text.chunks_exact_mut(DIGITS)) {
        let mut limb = *limb;
        for place in chunk.iter_mut().rev() {
            *place = b'0' + (limb % 10) as u8;
            limb /= 10;
        }
    }
    text.drain(..text.len() - length);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_and_roots_of_long_numbers() {
        let mut seed = 1u64;
        let mut random = |limbs: usize| {
            let mut number: Vec<u32> = (0..limbs)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let limb = (seed >> 33) as u32 % BASE;
                    match seed >> 61 {
                        0 => 0,
                        1 => BASE - 1,
                        _ => limb,
                    }
                })
                .collect();
            trim(&mut number);
            number
        };
        for round in 0..2000 {
            let (a, b) = (random(round % 40), random(round % 17 + 1));
            if b.is_empty() {
                continue;
            }
            let (quotient, rest) = divide(&a, &b);
            assert_eq!(compare(&rest, &b), Ordering::Less);
            assert_eq!(add(&multiply(&quotient, &b), &rest), a);
            let root = square_root(&a);
            assert_ne!(compare(&multiply(&root, &root), &a), Ordering::Greater);
            let mut more = root.clone();
            increment(&mut more);
            assert_eq!(compare(&multiply(&more, &more), &a), Ordering::Greater);
            let digits = to_digits(&a);
            assert_eq!(
                from_digits(digits.iter().map(|digit| digit - b'0'), digits.len()),
                a
            );
            assert_eq!(shift_right(&shift_left(&a, round % 31), round % 31), a);
        }
    }
}
