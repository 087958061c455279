//! Variables of equal degree in doubly linked lists.

pub(super) const NONE: u32 = u32::MAX;

/// Lists of variables by degree; the last list holds all degrees from its own on.
///
/// Variables outside of the lists may use their links for chains of equal hash.
pub(super) struct DegreeLists {
    heads: Vec<u32>,
    links: Vec<DegreeLink>,
    least: usize,
}

#[derive(Clone, Copy)]
struct DegreeLink {
    next: u32,
    /// The one before, or the hash of a variable in a chain.
    previous: u32,
}

impl DegreeLists {
    pub(super) fn new() -> DegreeLists {
        DegreeLists {
            heads: Vec::new(),
            links: Vec::new(),
            least: 0,
        }
    }

    /// `buckets` empty lists for so many variables.
    pub(super) fn begin(&mut self, variables: usize, buckets: usize) {
        self.heads.clear();
        self.heads.reserve_exact(buckets);
        self.heads.resize(buckets, NONE);
        self.links.clear();
        self.links.reserve_exact(variables);
        self.links.resize(
            variables,
            DegreeLink {
                next: NONE,
                previous: NONE,
            },
        );
        self.least = 0;
    }

    #[inline]
    fn bucket(&self, degree: u32) -> usize {
        (degree as usize).min(self.heads.len() - 1)
    }

    #[inline]
    pub(super) fn insert(&mut self, variable: u32, degree: u32) {
        let bucket = self.bucket(degree);
        let next = std::mem::replace(&mut self.heads[bucket], variable);
        self.links[variable as usize] = DegreeLink { next, previous: NONE };
        if next != NONE {
            self.links[next as usize].previous = variable;
        }
        self.least = self.least.min(bucket);
    }

    #[inline]
    pub(super) fn remove(&mut self, variable: u32, degree: u32) {
        let DegreeLink { next, previous } = self.links[variable as usize];
        if next != NONE {
            self.links[next as usize].previous = previous;
        }
        if previous == NONE {
            let bucket = self.bucket(degree);
            self.heads[bucket] = next;
        } else {
            self.links[previous as usize].next = next;
        }
    }

    /// Takes out the variable of least degree, of which there is one.
    pub(super) fn pop_least(&mut self) -> u32 {
        while self.heads[self.least] == NONE {
            self.least += 1;
        }
        let variable = self.heads[self.least];
        self.remove(variable, self.least as u32);
        variable
    }

    pub(super) fn chain(&mut self, variable: u32, next: u32, hash: u32) {
        self.links[variable as usize] = DegreeLink { next, previous: hash };
    }

    pub(super) fn hash(&self, variable: u32) -> u32 {
        self.links[variable as usize].previous
    }

    pub(super) fn next(&self, variable: u32) -> u32 {
        self.links[variable as usize].next
    }

    pub(super) fn set_next(&mut self, variable: u32, next: u32) {
        self.links[variable as usize].next = next;
    }
}
