//! Numbers in lines of text, as files of edges and of Matrix Market have them, read without trust.

use std::path::PathBuf;

use crate::StoreError;

/// What values of lines are read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    Float64,
    Int64,
    Uint64,
}

/// What lines are made of.
#[derive(Clone, Debug)]
pub struct LineFormat {
    /// The file, as errors name it.
    pub name: PathBuf,
    /// Which words of a line are row and column.
    pub ids: [usize; 2],
    /// Which others are values; nothing for the third one where there is one.
    pub values: Option<Vec<usize>>,
    pub number: NumberType,
    /// What may keep words apart instead of white space: the first of them in the first line with numbers, with any white
    /// space around. Where there is none, white space does. So numbers with a decimal comma or a separator of thousands
    /// are no other numbers.
    pub separators: Vec<u8>,
    /// What lines begin with that are passed over.
    pub comments: Vec<u8>,
    /// The number of the first row and column.
    pub base: u64,
    /// Rows and columns there are.
    pub limits: Option<[u64; 2]>,
}

/// The numbers of some lines. Rows and columns count from 0.
#[derive(Debug, Default)]
pub struct TextColumns {
    pub ids: [Vec<u64>; 2],
    /// The bits of numbers of 64 bits.
    pub values: Vec<Vec<u64>>,
}

/// Reads blocks of lines, one after the other, and knows in which line what is wrong is.
#[derive(Debug)]
pub struct Lines {
    format: LineFormat,
    /// What may keep words apart, beside white space.
    may_separate: Box<[bool; 256]>,
    /// What does; nothing where white space does, or no line has told yet.
    separator: Option<u8>,
    is_comment: Box<[bool; 256]>,
    /// What each word of a line is, once the first line has told how many it has.
    words: Option<Vec<WordSpan>>,
    /// Lines before the next block.
    line: u64,
}

#[derive(Clone, Copy, Debug)]
enum WordSpan {
    Id(usize),
    Value(usize),
    Unread,
}

/// Where a line begins that is not as it should be, and why if it has as many words as the others.
type Fault = (usize, String);

const NEWLINE: u8 = b'\n';
const RETURN: u8 = b'\r';
/// What files of some editors begin with, in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// A number of more digits may not have room in 64 bits.
const DIGITS_MAX: usize = 19;
/// Text that is worth a thread.
const TOGETHER: usize = 1 << 17;
/// Characters of a line that an error shows.
const SHOWN: usize = 60;
const NO_NUMBERS: &str = "not all of it is numbers";

fn is_blank(byte: u8) -> bool {
    byte <= b' ' && byte != NEWLINE
}

impl Lines {
    pub fn new(format: LineFormat) -> Lines {
        let table = |holds: &dyn Fn(u8) -> bool| Box::new(std::array::from_fn(|byte| holds(byte as u8)));
        Lines {
            may_separate: table(&|byte| byte > b' ' && format.separators.contains(&byte)),
            separator: None,
            is_comment: table(&|byte| format.comments.contains(&byte)),
            words: None,
            line: 0,
            format,
        }
    }

    /// Counts lines that others have read.
    pub fn skip(&mut self, lines: u64) {
        self.line += lines;
    }

    /// Whether a line with numbers has been seen, so that blocks may be skipped.
    pub fn is_begun(&self) -> bool {
        self.words.is_some()
    }

    /// The numbers of a block of whole lines, by so many threads where it is large.
    ///
    /// # Errors
    /// A line that has not as many words as the first, nothing where a separator has a word beside it, words that are no
    /// numbers, rows or columns out of their bounds, a carriage return within a line.
    pub fn parse(&mut self, block: &[u8], threads: usize) -> Result<TextColumns, StoreError> {
        let marked = block.strip_prefix(BYTE_ORDER_MARK).filter(|_| self.line == 0);
        let block = marked.unwrap_or(block);
        if let Some(at) = stray_return(block) {
            let begin = block[..at].iter().rposition(|byte| *byte == NEWLINE);
            let why = "a carriage return ends no line without a newline";
            return Err(self.error(block, begin.map_or(0, |newline| newline + 1), why));
        }
        if self.words.is_none() {
            self.words = self.find_words(block)?;
        }
        let Some(words) = &self.words else {
            self.line += count_lines(block);
            return Ok(TextColumns::default());
        };
        let parts = parts_of(block, threads.min(block.len() / TOGETHER).max(1));
        let read = |(begin, part): &(usize, &[u8])| {
            let found = self.parse_part(part, words);
            found.map_err(|(at, why)| (begin + at, why))
        };
        let found: Vec<Result<TextColumns, Fault>> = std::thread::scope(|scope| {
            let others: Vec<_> = parts[1..].iter().map(|part| scope.spawn(move || read(part))).collect();
            let first = read(&parts[0]);
            let others = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            std::iter::once(first).chain(others).collect()
        });
        let mut columns: Option<TextColumns> = None;
        for part in found {
            let part = part.map_err(|fault| self.refuse(block, words.len(), fault))?;
            match &mut columns {
                None => columns = Some(part),
                Some(before) => before.append(part),
            }
        }
        self.line += count_lines(block);
        Ok(columns.unwrap_or_default())
    }

    /// What the words of a line are, by the first line that has any.
    fn find_words(&mut self, block: &[u8]) -> Result<Option<Vec<WordSpan>>, StoreError> {
        let mut begin = 0;
        for line in block.split(|byte| *byte == NEWLINE) {
            if !self.is_passed_over(line) {
                self.separator = line.iter().copied().find(|byte| self.may_separate[usize::from(*byte)]);
            }
            let count = self.count_words(line);
            if self.has_gap(line) {
                return Err(self.refuse(block, count, (begin, NO_NUMBERS.into())));
            }
            if count == 0 {
                begin += line.len() + 1;
                continue;
            }
            let is_third_one = count > 2 && !self.format.ids.contains(&2);
            let values = self
                .format
                .values
                .get_or_insert(if is_third_one { vec![2] } else { vec![] });
            let needed = self
                .format
                .ids
                .iter()
                .chain(&*values)
                .max()
                .map_or(0, |most| most.saturating_add(1));
            if count < needed {
                return Err(self.refuse(block, needed, (begin, NO_NUMBERS.into())));
            }
            let mut words = vec![WordSpan::Unread; count];
            values
                .iter()
                .enumerate()
                .for_each(|(which, at)| words[*at] = WordSpan::Value(which));
            let ids = self.format.ids;
            ids.iter()
                .enumerate()
                .for_each(|(axis, at)| words[*at] = WordSpan::Id(axis));
            return Ok(Some(words));
        }
        Ok(None)
    }

    /// Words of a line; none of a comment.
    fn count_words(&self, line: &[u8]) -> usize {
        if self.is_passed_over(line) {
            return 0;
        }
        match self.separator {
            Some(separator) => line.split(|byte| *byte == separator).count(),
            None => line
                .split(|byte| is_blank(*byte))
                .filter(|word| !word.is_empty())
                .count(),
        }
    }

    /// Whether a line is empty, or a comment.
    fn is_passed_over(&self, line: &[u8]) -> bool {
        let first = line.iter().find(|byte| !is_blank(**byte));
        first.is_none_or(|byte| self.is_comment[usize::from(*byte)])
    }

    /// Whether nothing stands before, between or behind separators of a line.
    fn has_gap(&self, line: &[u8]) -> bool {
        let mut fields = line.split(|byte| self.may_separate[usize::from(*byte)]);
        !self.is_passed_over(line) && fields.any(|field| field.iter().all(|byte| is_blank(*byte)))
    }

    /// Whether something else keeps words of a line apart than of the first one, or more than one thing does.
    fn is_ambiguous(&self, line: &[u8]) -> bool {
        let others = |byte: &u8| self.may_separate[usize::from(*byte)] && self.separator != Some(*byte);
        let by_blanks = |field: &[u8]| field.trim_ascii().iter().any(|byte| is_blank(*byte));
        let mut fields = line.split(|byte| self.separator == Some(*byte));
        line.iter().any(others) || (self.separator.is_some() && fields.any(by_blanks))
    }

    /// How words are kept apart, for errors.
    fn apart(&self) -> String {
        match self.separator {
            Some(separator) => format!("'{}'", char::from(separator)),
            None => "white space".into(),
        }
    }

    fn refuse(&self, block: &[u8], wanted: usize, (at, why): Fault) -> StoreError {
        let line = line_at(block, at);
        let found = self.count_words(line);
        let why = if self.has_gap(line) {
            "an empty field".to_string()
        } else if self.is_ambiguous(line) {
            let apart = self.apart();
            format!("{why}; numbers are kept apart by {apart} here: say which by separators=")
        } else if found == wanted {
            why
        } else {
            format!("{found} numbers, not {wanted}")
        };
        self.error(block, at, &why)
    }

    fn error(&self, block: &[u8], at: usize, why: &str) -> StoreError {
        let line = line_at(block, at);
        let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
        let number = self.line + 1 + count_lines(&block[..at]);
        StoreError::Format {
            path: self.format.name.clone(),
            reason: format!("line {number}: '{}': {why}", shown.trim()),
        }
    }

    fn parse_part(&self, text: &[u8], words: &[WordSpan]) -> Result<TextColumns, Fault> {
        let values = self.format.values.as_ref().map_or(0, Vec::len);
        let mut found = TextColumns {
            values: vec![vec![]; values],
            ..TextColumns::default()
        };
        // As many lines as there are if they are as long as the first ones.
        let head = &text[..text.len().min(4096)];
        let lines = text.len() / (head.len() / (count_lines(head) as usize + 1) + 1) + 1;
        found
            .ids
            .iter_mut()
            .chain(&mut found.values)
            .for_each(|column| column.reserve(lines));
        let mut at = 0;
        loop {
            at = skip_blanks(text, at);
            let Some(&first) = text.get(at) else { return Ok(found) };
            if first == NEWLINE {
                at += 1;
            } else if self.is_comment[usize::from(first)] {
                at += text[at..]
                    .iter()
                    .position(|byte| *byte == NEWLINE)
                    .unwrap_or(text.len() - at);
            } else {
                at = self.parse_line(text, at, words, &mut found).map_err(|why| {
                    let begin = text[..at].iter().rposition(|byte| *byte == NEWLINE);
                    (begin.map_or(0, |newline| newline + 1), why)
                })?;
            }
        }
    }

    /// The line whose first word begins at `at`; where the next one begins.
    #[inline]
    fn parse_line(
        &self,
        text: &[u8],
        mut at: usize,
        words: &[WordSpan],
        found: &mut TextColumns,
    ) -> Result<usize, String> {
        for word in words {
            at = match *word {
                WordSpan::Id(axis) => {
                    let (number, end) = digits(text, at).ok_or(NO_NUMBERS)?;
                    found.ids[axis].push(self.place(number, axis)?);
                    end
                }
                WordSpan::Value(which) => {
                    let end = self.end_of_word(text, at);
                    let number = self.value(&text[at..end]).ok_or(NO_NUMBERS)?;
                    found.values[which].push(number);
                    end
                }
                WordSpan::Unread => match self.end_of_word(text, at) {
                    end if end == at => return Err(NO_NUMBERS.into()),
                    end => end,
                },
            };
            at = self.skip_between(text, at).ok_or(NO_NUMBERS)?;
        }
        match text.get(at) {
            None => Ok(at),
            Some(&NEWLINE) => Ok(at + 1),
            Some(_) => Err(NO_NUMBERS.into()),
        }
    }

    /// A row or column from its number in the file.
    #[inline]
    fn place(&self, number: u64, axis: usize) -> Result<u64, String> {
        let base = self.format.base;
        let place = number
            .checked_sub(base)
            .ok_or_else(|| format!("{number}, and numbers begin with {base}"))?;
        match self.format.limits {
            Some(limits) if place >= limits[axis] => {
                let name = ["rows", "columns"][axis];
                Err(format!("{number}, and the matrix has {} {name}", limits[axis]))
            }
            _ => Ok(place),
        }
    }

    fn value(&self, word: &[u8]) -> Option<u64> {
        let word = std::str::from_utf8(word).ok()?.trim_ascii_end();
        match self.format.number {
            NumberType::Int64 => word.parse::<i64>().ok().map(|number| number as u64),
            NumberType::Uint64 => word.parse::<u64>().ok(),
            NumberType::Float64 => word.parse::<f64>().ok().map(f64::to_bits),
        }
    }

    /// To the next word, over what keeps them apart; nothing where the word is not over. A separator stays where no word
    /// is behind it.
    #[inline]
    fn skip_between(&self, text: &[u8], at: usize) -> Option<usize> {
        let next = skip_blanks(text, at);
        match text.get(next) {
            None | Some(&NEWLINE) => Some(next),
            Some(byte) if self.separator == Some(*byte) => match skip_blanks(text, next + 1) {
                behind if is_end(text, behind) => Some(next),
                behind => Some(behind),
            },
            Some(_) => (self.separator.is_none() && next > at).then_some(next),
        }
    }

    /// Where a word ends, with white space behind it where a separator ends it.
    #[inline]
    fn end_of_word(&self, text: &[u8], at: usize) -> usize {
        let rest = text[at..].iter();
        let length = match self.separator {
            Some(separator) => rest.take_while(|byte| **byte != separator && **byte != NEWLINE).count(),
            None => rest.take_while(|byte| **byte > b' ').count(),
        };
        at + length
    }
}

#[inline]
fn skip_blanks(text: &[u8], at: usize) -> usize {
    let others = |byte: &u8| !is_blank(*byte);
    at + text[at..].iter().position(others).unwrap_or(text.len() - at)
}

/// Whether a line ends there.
#[inline]
fn is_end(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| *byte == NEWLINE)
}

impl TextColumns {
    fn append(&mut self, other: TextColumns) {
        let mine = self.ids.iter_mut().chain(&mut self.values);
        for (column, more) in mine.zip(other.ids.iter().chain(&other.values)) {
            column.extend_from_slice(more);
        }
    }
}

/// A number of digits, and where it ends. Nothing where there are none, or too many.
#[inline]
fn digits(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (mut number, mut end) = (0, at);
    if let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let (first, count) = first_digits(*word);
        if (1..8).contains(&count) {
            return Some((first, at + count));
        }
        (number, end) = (first, at + count);
    }
    while let Some(byte) = text.get(end) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    (1..=DIGITS_MAX).contains(&(end - at)).then_some((number, end))
}

/// The number that eight bytes begin with, and its digits: all bytes at once, since how many digits there are cannot be
/// foretold (Lemire, "Quickly parsing eight digits", 2018).
#[inline]
fn first_digits(bytes: [u8; 8]) -> (u64, usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let values = u64::from_le_bytes(bytes) ^ (EACH * 0x30);
    // The highest bit of the first byte that is no digit; those behind it may be wrong.
    let others = (values.wrapping_add(EACH * 0x76) | values) & (EACH * 0x80);
    let count = others.trailing_zeros() / 8;
    // Zeros in front of them, so that there are always eight digits.
    let eight = values.checked_shl(64 - 8 * count).unwrap_or(0);
    let pairs = eight.wrapping_mul(10).wrapping_add(eight >> 8);
    let mask = 0x0000_00ff_0000_00ff;
    let high = (pairs & mask).wrapping_mul(100 + (1_000_000 << 32));
    let low = (pairs >> 16 & mask).wrapping_mul(1 + (10_000 << 32));
    (high.wrapping_add(low) >> 32, count as usize)
}

/// A carriage return that is neither before a newline nor the end. Those who write lines without newlines mean another
/// line by it.
fn stray_return(text: &[u8]) -> Option<usize> {
    let behind = text.get(1..)?;
    let is_stray = |byte: u8, next: u8| byte == RETURN && next != NEWLINE;
    let pairs = || text.iter().zip(behind);
    // All of them are looked at: the compiler compares a vector at a time then.
    let any = pairs().fold(false, |any, (byte, next)| any | is_stray(*byte, *next));
    any.then(|| pairs().position(|(byte, next)| is_stray(*byte, *next)))?
}

fn line_at(block: &[u8], begin: usize) -> &[u8] {
    block[begin..].split(|byte| *byte == NEWLINE).next().unwrap_or(&[])
}

fn count_lines(text: &[u8]) -> u64 {
    // Counted by bytes, as many as those hold: the compiler counts a vector at a time then.
    let parts = text.chunks(255);
    parts
        .map(|part| u64::from(part.iter().map(|byte| u8::from(*byte == NEWLINE)).sum::<u8>()))
        .sum()
}

/// A block cut into whole lines, and where each part begins.
fn parts_of(block: &[u8], count: usize) -> Vec<(usize, &[u8])> {
    let mut parts = vec![];
    let mut begin = 0;
    for part in 1..=count {
        let wanted = (block.len() * part / count).max(begin);
        let rest = block[wanted..].iter().position(|byte| *byte == NEWLINE);
        let end = match rest {
            Some(newline) if part < count => wanted + newline + 1,
            _ => block.len(),
        };
        parts.push((begin, &block[begin..end]));
        begin = end;
    }
    parts
}

#[cfg(test)]
mod tests;
