//! Several ways to do the same, of which a CPU has some: one is chosen by its name, and never silently another.

use std::fmt;

use crate::flags;

/// The name of the wish for the best there is.
const AUTO: &str = "auto";

/// The CPU does not have the way that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    name: &'static str,
    has: Vec<&'static str>,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this CPU does not have {}; it has {}", self.name, self.has.join(", "))
    }
}

impl std::error::Error for Unavailable {}

/// The way that has the name of `wish` among `choices`, or the last of `available`, the best, if that is `auto`.
///
/// # Errors
///
/// When it is not available.
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
    fn auto_is_the_last_and_what_is_not_there_is_refused_with_what_is() {
        let choices = [("auto", 0), ("plain", 1), ("wide", 2)];
        let pick = |wish| select(wish, &choices, &["plain", "wider"], |way| way);
        assert_eq!((pick(0), pick(1)), (Ok("wider"), Ok("plain")));
        assert_eq!(pick(2).unwrap_err().to_string(), "this CPU does not have wide; it has plain, wider");
    }
}
