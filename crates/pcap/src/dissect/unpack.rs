//! Numbers in network order. Bytes beyond the end are 0; callers have looked before.

pub(super) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u16::from_be_bytes(*word))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}

pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Bytes from `at` on, as far as there are.
pub(super) fn rest(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

/// Up to 16 bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > 16 {
        text.push('…');
    }
    text
}
