//! The hashed message as SHA-256 blocks of 64-bit words: header, ids, padding.

use crate::sha256::Block;
use crate::source::Source;
use crate::wire;

/// Words in one block.
const WORDS: usize = size_of::<Block>() / size_of::<u64>();

/// Words before the first id: the domain and the version (two words) and the number of ids.
const HEADER: usize = 3;

/// First word of the domain.
const DOMAIN: u64 = half_of_domain(0);

/// Second word of the domain, its last byte still free.
const DOMAIN_END: u64 = half_of_domain(8);

/// Last byte of the second word: the version of the format.
const VERSION: u64 = wire::VERSION as u64;

/// The bit that ends a message, as the last byte of a word.
const END_BYTE: u64 = 0x80;

/// The bit that ends a message, as the first byte of a word.
const END_WORD: u64 = 0x80 << 56;

/// The bytes of the domain from `start` on as a big-endian word, zero behind its end.
const fn half_of_domain(start: usize) -> u64 {
    let mut word = 0;
    let mut i = start;
    while i < start + 8 {
        word = word << 8 | if i < wire::DOMAIN.len() { wire::DOMAIN[i] as u64 } else { 0 };
        i += 1;
    }
    word
}

/// Reads one source, front to back, as the blocks of its padded message.
pub struct Message<'a, S: ?Sized> {
    /// Where the ids come from.
    source: &'a S,
    /// The number of ids, asked for once.
    ids: usize,
    /// The next word of the message.
    at: usize,
    /// Blocks not yet read.
    left: usize,
}

impl<'a, S: Source + ?Sized> Message<'a, S> {
    /// Starts at the first block of the message of `source`.
    pub fn new(source: &'a S) -> Self {
        let ids = source.len();
        let left = blocks(ids);
        Self { source, ids, at: 0, left }
    }

    /// The number of blocks not yet read.
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Writes the next blocks to the front of `out`, as many as fit and are left, and returns their number.
    ///
    /// # Errors
    /// The source refuses an element; this reader must not be used again.
    #[expect(clippy::inline_always, reason = "see `with_vectors`")]
    #[inline(always)]
    pub fn fill(&mut self, out: &mut [Block]) -> Result<usize, S::Error> {
        let count = self.left.min(out.len());
        let mut out = out[..count].as_flattened_mut();
        self.left -= count;
        if self.at == 0 && count > 0 {
            let (header, rest) = out.split_at_mut(HEADER);
            header.copy_from_slice(&self.header());
            out = rest;
            self.at = HEADER;
        }
        let id = self.at - HEADER;
        self.at += out.len();
        let ids_left = self.ids.saturating_sub(id);
        let (ids, padding) = out.split_at_mut(ids_left.min(out.len()));
        if !ids.is_empty() {
            self.source.read(id, ids)?;
        }
        if !padding.is_empty() {
            padding.fill(0);
            // The ids end just before this padding, not in an earlier call.
            if self.ids > 0 && id + ids_left == self.ids {
                padding[0] = END_WORD;
            }
            if self.left == 0 {
                padding[padding.len() - 1] = self.bits();
            }
        }
        Ok(count)
    }

    /// The words before the first id.
    const fn header(&self) -> [u64; HEADER] {
        if self.ids == 0 {
            // The domain alone, ended at once: neither version nor length.
            [DOMAIN, DOMAIN_END | END_BYTE, 0]
        } else {
            [DOMAIN, DOMAIN_END | VERSION, self.ids as u64]
        }
    }

    /// The length of the message in bits.
    const fn bits(&self) -> u64 {
        if self.ids == 0 { 15 * 8 } else { (HEADER + self.ids) as u64 * u64::BITS as u64 }
    }
}

/// The number of blocks of the message of `ids` ids: the ids, the header, and two words for the end of the message and
/// its length, rounded up.
pub const fn blocks(ids: usize) -> usize {
    (ids + HEADER + 2).div_ceil(WORDS)
}
