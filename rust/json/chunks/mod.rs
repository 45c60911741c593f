//! The chunks of a stream: those that are alike but for what comes in pieces become one, as text, before they are parsed.
//!
//! What a stream's reader does with a chunk it says as [`Rules`]. By them one chunk is made of several that it would read
//! to the same result; whatever the rules do not surely cover stays a chunk of its own.

mod outline;
mod rules;

pub use rules::{Rule, Rules};

use super::halt::{Halt, Reading, room};
use outline::{Outline, Piece};

/// Chunks that become one.
struct Run<'a> {
    /// The first of them.
    text: &'a [u8],
    outline: Outline,
    /// What has been joined for each piece, once there is a second.
    joined: Vec<Vec<u8>>,
}

/// Puts together what is alike; gives a JSON array of what it then is.
///
/// # Errors
///
/// [`Halt::Odd`] where a chunk is no object that is surely well-formed, [`Halt::Memory`] where there is no memory.
pub fn join_chunks<'a>(chunks: impl Iterator<Item = &'a [u8]>, rules: &Rules) -> Result<Vec<u8>, Halt> {
    let mut out = vec![b'['];
    let mut run: Option<Run<'a>> = None;
    let mut outline = Outline::default();
    for text in chunks {
        outline.read(text, rules).ok_or(Halt::Odd)?;
        match &mut run {
            Some(run) if run.outline.goes_on(&outline) => run.add(text, &outline)?,
            _ => {
                let next = Run { text, outline: std::mem::take(&mut outline), joined: Vec::new() };
                if let Some(done) = run.replace(next) {
                    done.push_to(&mut out)?;
                }
            }
        }
    }
    if let Some(done) = run {
        done.push_to(&mut out)?;
    }
    push(&mut out, b"]")?;
    Ok(out)
}

impl<'a> Run<'a> {
    /// Takes the next one.
    fn add(&mut self, text: &[u8], outline: &Outline) -> Reading<()> {
        if self.joined.is_empty() {
            self.joined = room(self.outline.pieces.len())?;
            for piece in &self.outline.pieces {
                let mut first = Vec::new();
                push(&mut first, &self.text[piece.place()])?;
                self.joined.push(first);
            }
        }
        for (joined, piece) in self.joined.iter_mut().zip(&outline.pieces) {
            let text = &text[piece.place()];
            match piece {
                Piece::Text(_) => {}
                // One that is empty follows empty ones alone.
                Piece::List(_) if super::trim(text).is_empty() => {}
                Piece::List(_) => push(joined, b",")?,
                Piece::Last(_) => joined.clear(),
            }
            push(joined, text)?;
        }
        Ok(())
    }

    /// Writes the one that they have become.
    fn push_to(&self, out: &mut Vec<u8>) -> Reading<()> {
        if out.len() > 1 {
            push(out, b",")?;
        }
        let mut kept = 0;
        for (joined, piece) in self.joined.iter().zip(&self.outline.pieces) {
            let place = piece.place();
            push(out, &self.text[kept..place.start])?;
            push(out, joined)?;
            kept = place.end;
        }
        push(out, &self.text[kept..])
    }
}

fn push(out: &mut Vec<u8>, text: &[u8]) -> Reading<()> {
    out.try_reserve(text.len())?;
    out.extend_from_slice(text);
    Ok(())
}
