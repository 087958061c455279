//! Rows of a sparse matrix times another sparse one, row by row (Gustavson, "Two Fast Algorithms for Sparse Matrices", 1978):
//! the rows of the second that a row of the first names are added up in a table, by hash where they are few, and place by
//! place over a range of columns at a time where they are many (Nagasaka et al. 2019, "Performance optimization, modeling
//! and analysis of sparse matrix-matrix products on multi-core and many-core processors", section 4). Where a mask names the
//! places that may have entries there is a sum for each of these and for no other (Milaković et al. 2022, "Parallel algorithms
//! for masked sparse matrix-matrix products").

use std::ops::{Range, RangeInclusive};

use outcore_coding::tiles::Rows;
use outcore_dtype::DType;

use super::semiring::{complex, float32, float64, int64, truth, Arithmetic};
use super::Semiring;

/// Places of a table, at most.
const TABLE: usize = 1 << 18;
/// Columns from the first to the last of a row of a mask that is looked up by bits.
const WINDOW: u64 = 1 << 20;
/// Words of the bits of a window, which begins within a word.
const WORDS: usize = (WINDOW / 64) as usize + 1;
/// Entries of a row that are looked up together.
const CHUNK: usize = 256;
/// Bytes of a table and of what is sorted with it.
pub const TABLE_BYTES: u64 = (TABLE * (8 + 16 + 1 + 4 + 16) + WORDS * (8 + 4)) as u64;

/// Some tile rows of the second matrix, ascending.
#[derive(Debug)]
pub struct Batch<'a> {
    pub side: u64,
    pub tile_rows: Vec<(u64, &'a Rows)>,
}

impl Batch<'_> {
    /// The rows that are there, from the first to the last tile row.
    fn rows(&self) -> Range<u64> {
        match (self.tile_rows.first(), self.tile_rows.last()) {
            (Some((first, _)), Some((last, _))) => first * self.side..(last + 1) * self.side,
            _ => 0..0,
        }
    }
}

/// What places of the result may have entries.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a> {
    pub rows: &'a Rows,
    /// Whether it is the others that may.
    pub complement: bool,
    /// Of the matrix.
    pub columns: u64,
}

impl Mask<'_> {
    /// Between which columns a row may have entries; nothing where it may have none.
    fn span(&self, row: usize) -> Option<RangeInclusive<u64>> {
        let named = &self.rows.columns[self.rows.place(row)];
        match (self.complement, named) {
            (true, _) => ((named.len() as u64) < self.columns).then_some(0..=u64::MAX),
            (false, []) => None,
            (false, [first, ..]) => Some(*first..=named[named.len() - 1]),
        }
    }
}

/// Where the entries of one row of the result are added up.
#[derive(Debug, Default)]
pub struct Table {
    keys: Vec<u64>,
    values: Vec<u128>,
    states: Vec<State>,
    touched: Vec<u32>,
    order: Vec<(u64, u32)>,
    /// Of the columns that the mask names, and how many of them lie before each word that has any.
    bits: Vec<u64>,
    ranks: Vec<u32>,
    /// For each entry of the row of the first matrix: the rest of the row of the second.
    sources: Vec<EntrySource>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum State {
    #[default]
    Free,
    /// Named by the mask, without an entry so far.
    Allowed,
    Refused,
    Present,
}

#[derive(Clone, Copy, Debug)]
struct EntrySource {
    tile_row: u32,
    from: u32,
    to: u32,
    /// The entry of the first matrix; the largest number for what was there before.
    entry: u32,
}

const BEFORE: u32 = u32::MAX;

/// The product of some rows with a batch, added to what was `before`. Entries are added in the order of the columns of the
/// first matrix, so that the sums have the same bits in however many batches.
pub struct Operands<'a> {
    pub first: &'a Rows,
    pub rows: Range<usize>,
    pub batch: &'a Batch<'a>,
    pub before: Option<&'a Rows>,
    pub mask: Option<Mask<'a>>,
}

impl Operands<'_> {
    /// The rows that a source is of.
    fn rows_of(&self, source: &EntrySource) -> &Rows {
        match source.entry {
            BEFORE => self.before.expect("it was listed"),
            _ => self.batch.tile_rows[source.tile_row as usize].1,
        }
    }
}

/// Multiplies rows; the result has a row for each of them.
pub type RowsProduct = fn(&Operands<'_>, &mut Table) -> Rows;

fn multiply_rows<R: Arithmetic>(operands: &Operands<'_>, table: &mut Table) -> Rows {
    let mut out = Rows::empty(0);
    let mut found: Vec<R::T> = vec![];
    for row in operands.rows.clone() {
        let span = operands.mask.map_or(Some(0..=u64::MAX), |mask| mask.span(row));
        let terms = span.as_ref().map_or(0, |span| find_sources(operands, row, span, table));
        if terms > 0 {
            let mut sums = RowSums::<R> {
                operands,
                table,
                found: &mut found,
                columns: &mut out.columns,
            };
            sums.row(row, terms, &span.unwrap_or(0..=0));
        }
        out.end_row();
    }
    out.values.extend(&found);
    out
}

/// The part of a row whose columns lie within a span.
fn within(columns: &[u64], place: Range<usize>, span: &RangeInclusive<u64>) -> Range<usize> {
    let own = &columns[place.clone()];
    let begin = match own.first() {
        Some(first) if first < span.start() => own.partition_point(|column| column < span.start()),
        _ => 0,
    };
    let end = match own.last() {
        Some(last) if last > span.end() => own.partition_point(|column| column <= span.end()),
        _ => own.len(),
    };
    place.start + begin..place.start + end.max(begin)
}

/// Lists what is added up for a row between some columns; gives the number of terms.
fn find_sources(operands: &Operands<'_>, row: usize, span: &RangeInclusive<u64>, table: &mut Table) -> usize {
    let (first, batch) = (operands.first, operands.batch);
    table.sources.clear();
    let mut terms = 0;
    if let Some(before) = operands.before {
        let place = before.place(row);
        terms += place.len();
        table.sources.push(EntrySource {
            tile_row: 0,
            from: place.start as u32,
            to: place.end as u32,
            entry: BEFORE,
        });
    }
    let place = first.place(row);
    let (columns, rows) = (&first.columns[place.clone()], batch.rows());
    let begin = columns.partition_point(|column| *column < rows.start);
    let mut tile_row = 0;
    for (position, column) in columns.iter().enumerate().skip(begin) {
        if *column >= rows.end {
            break;
        }
        let number = column / batch.side;
        while tile_row < batch.tile_rows.len() && batch.tile_rows[tile_row].0 < number {
            tile_row += 1;
        }
        let Some((at, rows)) = batch.tile_rows.get(tile_row) else {
            break;
        };
        if *at != number {
            continue;
        }
        let own = within(&rows.columns, rows.place((column % batch.side) as usize), span);
        if !own.is_empty() {
            terms += own.len();
            table.sources.push(EntrySource {
                tile_row: tile_row as u32,
                from: own.start as u32,
                to: own.end as u32,
                entry: (place.start + position) as u32,
            });
        }
    }
    terms
}

/// The sums of one row.
struct RowSums<'a, R: Arithmetic> {
    operands: &'a Operands<'a>,
    table: &'a mut Table,
    found: &'a mut Vec<R::T>,
    columns: &'a mut Vec<u64>,
}

type Masked<'a> = Option<(Range<usize>, Mask<'a>)>;

impl<R: Arithmetic> RowSums<'_, R> {
    /// All of a row that has so many terms between some columns.
    fn row(&mut self, row: usize, terms: usize, span: &RangeInclusive<u64>) {
        let masked = self.operands.mask.map(|mask| (mask.rows.place(row), mask));
        let held = match &masked {
            Some((place, mask)) if !mask.complement => {
                if span.end() - span.start() < WINDOW {
                    return self.by_bits(&mask.rows.columns[place.clone()]);
                }
                place.len()
            }
            Some((place, _)) => terms + place.len(),
            None => terms,
        };
        match 2 * held <= TABLE {
            true => self.by_hash((2 * held).next_power_of_two(), masked),
            false => self.by_range(masked),
        }
    }

    /// The columns that the mask names, by their bits: each has a sum, and no other column has one. Where a source has many
    /// more entries than there are such columns, it is searched for them.
    fn by_bits(&mut self, named: &[u64]) {
        self.grow(named.len());
        let Table {
            values,
            states,
            bits,
            ranks,
            sources,
            ..
        } = &mut *self.table;
        bits.resize(WORDS, 0);
        ranks.resize(WORDS, 0);
        let base = named[0] & !63;
        let word_of = |column: u64| ((column - base) >> 6) as usize;
        for (rank, column) in named.iter().enumerate() {
            let word = word_of(*column);
            if bits[word] == 0 {
                ranks[word] = rank as u32;
            }
            bits[word] |= 1 << (column & 63);
        }
        let values: &mut [R::T] = of_words_mut(values);
        let first: &[R::T] = self.operands.first.values.of();
        let mut add = |at: usize, term: R::T| {
            values[at] = match states[at] {
                State::Present => R::add(values[at], term),
                _ => term,
            };
            states[at] = State::Present;
        };
        let mut hits = [0u8; CHUNK];
        for source in sources {
            let rows = self.operands.rows_of(source);
            let scale = (source.entry != BEFORE).then(|| first[source.entry as usize]);
            let place = source.from as usize..source.to as usize;
            let (columns, own) = (&rows.columns[place.clone()], &rows.values.of::<R::T>()[place]);
            let term = |value: R::T| scale.map_or(value, |scale| R::multiply(scale, value));
            let Some(last) = columns.last() else { continue };
            // Of those that the mask names, the ones that can be here.
            let named = &named[..named.partition_point(|column| column <= last)];
            if named.len() * (2 + columns.len().ilog2() as usize) < columns.len() {
                let mut from = 0;
                for (at, column) in named.iter().enumerate() {
                    from += columns[from..].partition_point(|own| own < column);
                    if columns.get(from) == Some(column) {
                        add(at, term(own[from]));
                    }
                }
                continue;
            }
            // Those that are named are listed first, without a branch that cannot be foretold.
            for (columns, own) in columns.chunks(CHUNK).zip(own.chunks(CHUNK)) {
                let mut count = 0;
                for (position, column) in columns.iter().enumerate() {
                    hits[count % CHUNK] = position as u8;
                    count += (bits[word_of(*column)] >> (column & 63) & 1) as usize;
                }
                for position in &hits[..count.min(CHUNK)] {
                    let (column, value) = (columns[usize::from(*position)], own[usize::from(*position)]);
                    let word = word_of(column);
                    let below = bits[word] & ((1 << (column & 63)) - 1);
                    add(ranks[word] as usize + below.count_ones() as usize, term(value));
                }
            }
        }
        let values: &[R::T] = of_words(&self.table.values);
        for (at, column) in named.iter().enumerate() {
            if std::mem::take(&mut self.table.states[at]) == State::Present {
                self.columns.push(*column);
                self.found.push(values[at]);
            }
            self.table.bits[word_of(*column)] = 0;
        }
    }

    fn grow(&mut self, places: usize) {
        if self.table.keys.len() < places {
            self.table.keys.resize(places, 0);
            self.table.values.resize(places, 0);
            self.table.states.resize(places, State::Free);
        }
    }

    /// All columns at once, by hash in so many places, a power of two above one.
    fn by_hash(&mut self, places: usize, masked: Masked<'_>) {
        self.grow(places);
        let (shift, wrap) = (64 - places.trailing_zeros(), places - 1);
        let find = |keys: &[u64], states: &[State], key: u64| {
            let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize;
            while states[at] != State::Free && keys[at] != key {
                at = (at + 1) & wrap;
            }
            at
        };
        self.run(u64::MAX, masked, find);
        self.table.order.clear();
        for slot in &self.table.touched {
            let slot = *slot as usize;
            if self.table.states[slot] == State::Present {
                self.table.order.push((self.table.keys[slot], slot as u32));
            }
        }
        self.table.order.sort_unstable();
        let values: &[R::T] = of_words(&self.table.values);
        for (key, slot) in &self.table.order {
            self.columns.push(*key);
            self.found.push(values[*slot as usize]);
        }
        self.clear();
    }

    /// One range of columns after the other, each place of the table a column.
    fn by_range(&mut self, masked: Masked<'_>) {
        self.grow(TABLE);
        let mut masked = masked;
        while let Some(least) = self.least() {
            let (begin, end) = (least, least.saturating_add(TABLE as u64));
            if let Some((place, mask)) = &mut masked {
                let columns = &mask.rows.columns[place.clone()];
                place.start += columns.partition_point(|column| *column < begin);
            }
            self.run(end, masked.clone(), |_, _, key| (key - begin) as usize);
            let values: &[R::T] = of_words(&self.table.values);
            for (slot, state) in self.table.states[..TABLE].iter_mut().enumerate() {
                if *state == State::Present {
                    self.columns.push(begin + slot as u64);
                    self.found.push(values[slot]);
                }
                *state = State::Free;
            }
            self.table.touched.clear();
        }
    }

    /// The first column that is left.
    fn least(&self) -> Option<u64> {
        let columns = self
            .table
            .sources
            .iter()
            .filter(|source| source.from < source.to)
            .map(|source| self.operands.rows_of(source).columns[source.from as usize]);
        columns.min()
    }

    /// Adds all terms in columns below `end`, and takes them from the sources.
    #[inline(always)]
    fn run(&mut self, end: u64, masked: Masked<'_>, find: impl Fn(&[u64], &[State], u64) -> usize) {
        let Table {
            keys,
            values,
            states,
            touched,
            sources,
            ..
        } = &mut *self.table;
        let values: &mut [R::T] = of_words_mut(values);
        let mut only = false;
        if let Some((place, mask)) = masked {
            only = !mask.complement;
            for column in mask.rows.columns[place].iter().take_while(|column| **column < end) {
                let at = find(keys, states, *column);
                keys[at] = *column;
                states[at] = if only { State::Allowed } else { State::Refused };
                touched.push(at as u32);
            }
        }
        let first: &[R::T] = self.operands.first.values.of();
        for source in sources {
            let rows = self.operands.rows_of(source);
            let scale = (source.entry != BEFORE).then(|| first[source.entry as usize]);
            let own: &[R::T] = rows.values.of();
            let mut position = source.from as usize;
            while position < source.to as usize && rows.columns[position] < end {
                let (key, value) = (rows.columns[position], own[position]);
                position += 1;
                let at = find(keys, states, key);
                let term = scale.map_or(value, |scale| R::multiply(scale, value));
                match states[at] {
                    State::Present => values[at] = R::add(values[at], term),
                    State::Allowed => (values[at], states[at]) = (term, State::Present),
                    State::Free if !only => {
                        (keys[at], values[at], states[at]) = (key, term, State::Present);
                        touched.push(at as u32);
                    }
                    State::Free | State::Refused => {}
                }
            }
            source.from = position as u32;
        }
    }

    fn clear(&mut self) {
        for slot in self.table.touched.drain(..) {
            self.table.states[slot as usize] = State::Free;
        }
    }
}

/// The first places of the table's values as those of a type.
fn of_words<T: bytemuck::Pod>(words: &[u128]) -> &[T] {
    bytemuck::cast_slice(words)
}

fn of_words_mut<T: bytemuck::Pod>(words: &mut [u128]) -> &mut [T] {
    bytemuck::cast_slice_mut(words)
}

macro_rules! ordered_product {
    ($module:ident, $semiring:expr) => {
        match $semiring {
            Semiring::LorLand => return None,
            Semiring::PlusTimes => multiply_rows::<$module::PlusTimes>,
            Semiring::PlusPair => multiply_rows::<$module::PlusPair>,
            Semiring::PlusFirst => multiply_rows::<$module::PlusFirst>,
            Semiring::PlusSecond => multiply_rows::<$module::PlusSecond>,
            Semiring::MinPlus => multiply_rows::<$module::MinPlus>,
            Semiring::MaxPlus => multiply_rows::<$module::MaxPlus>,
            Semiring::MinTimes => multiply_rows::<$module::MinTimes>,
            Semiring::MaxTimes => multiply_rows::<$module::MaxTimes>,
            Semiring::MinFirst => multiply_rows::<$module::MinFirst>,
            Semiring::MinSecond => multiply_rows::<$module::MinSecond>,
            Semiring::MaxFirst => multiply_rows::<$module::MaxFirst>,
            Semiring::MaxSecond => multiply_rows::<$module::MaxSecond>,
            Semiring::AnyPair => multiply_rows::<$module::AnyPair>,
        }
    };
}

/// The product of rows in a semiring over elements of a type. Nothing where the type does not make the semiring.
pub fn rows_product(semiring: Semiring, dtype: DType) -> Option<RowsProduct> {
    use Semiring::{AnyPair, LorLand, PlusTimes};
    Some(match (dtype, semiring) {
        (DType::C64, PlusTimes) => multiply_rows::<complex::Single>,
        (DType::C128, PlusTimes) => multiply_rows::<complex::Double>,
        (DType::Bool, LorLand) => multiply_rows::<truth::LorLand>,
        (DType::Bool, AnyPair) => multiply_rows::<truth::AnyPair>,
        (DType::F64, _) => ordered_product!(float64, semiring),
        (DType::F32, _) => ordered_product!(float32, semiring),
        (DType::I64, _) => ordered_product!(int64, semiring),
        _ => return None,
    })
}
