//! Selection of an implementation by name, without silent fallback.

use std::fmt;

use crate::flags;

/// Name that selects the best implementation.
const AUTO: &str = "auto";

/// The requested implementation is not supported by this CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    name: &'static str,
    has: Vec<&'static str>,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this CPU does not support {}; supported are {}", self.name, self.has.join(", "))
    }
}

impl std::error::Error for Unavailable {}

/// Selects the implementation named by `wish` among `choices`, or the last (best) of `available` for `auto`.
///
/// # Errors
///
/// If it is not available.
pub fn select<W: PartialEq, T: Copy>(
    wish: W,
    choices: &[(&'static str, W)],
    available: &[T],
    name: impl Fn(&T) -> &'static str,
) -> Result<T, Unavailable> {
    let wanted = flags::name(&wish, choices);
    let found = if wanted == AUTO { available.last() } else { available.iter().find(|way| name(way) == wanted) };
    found.copied().ok_or_else(|| Unavailable { name: wanted, has: available.iter().map(name).collect() })
}

#[cfg(test)]
mod tests {
    use super::select;

    #[test]
    fn auto_is_the_last_and_an_unavailable_choice_lists_the_available_ones() {
        let choices = [("auto", 0), ("plain", 1), ("wide", 2)];
        let pick = |wish| select(wish, &choices, &["plain", "wider"], |way| way);
        assert_eq!((pick(0), pick(1)), (Ok("wider"), Ok("plain")));
        assert_eq!(pick(2).unwrap_err().to_string(), "this CPU does not support wide; supported are plain, wider");
    }
}
