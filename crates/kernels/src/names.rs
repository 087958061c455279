//! Names of variants, for callers that know text alone.

/// The names of an enum's variants: `ALL`, `name` and `named`.
macro_rules! names {
    ($kind:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $kind {
            pub const ALL: [$kind; [$($name),+].len()] = [$($kind::$variant),+];

            pub fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name),+
                }
            }

            /// The variant of such a name.
            pub fn named(name: &str) -> Option<$kind> {
                $kind::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

pub(crate) use names;

#[cfg(test)]
mod tests {
    use crate::{Factor, Fourier, Scan, Tally};

    #[test]
    fn names_round_trip() {
        assert!(Scan::ALL.iter().all(|one| Scan::named(one.name()) == Some(*one)));
        assert!(Tally::ALL.iter().all(|one| Tally::named(one.name()) == Some(*one)));
        assert!(Fourier::ALL.iter().all(|one| Fourier::named(one.name()) == Some(*one)));
        assert!(Factor::ALL.iter().all(|one| Factor::named(one.name()) == Some(*one)));
        assert_eq!(Factor::named("lu"), None);
    }
}
