//! Command-line parameters: `--batch-size=8`.
//!
//! A flag is the parameter's name in kebab-case. An invalid one is rejected with a message that has the flag, the value
//! and the allowed values. The program then exits with [`USAGE`] and prints nothing on standard output.

use std::fmt;
use std::ops::RangeInclusive;

/// Exit code for invalid parameters.
pub const USAGE: u8 = 2;

/// An invalid command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagError(String);

impl FlagError {
    /// An error for rules of a kernel, e.g. on two parameters.
    #[must_use]
    pub fn new(flag: &str, found: impl fmt::Display, allowed: impl fmt::Display) -> Self {
        Self(format!("--{flag}={found}: {allowed}"))
    }
}

impl fmt::Display for FlagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FlagError {}

/// The flags of a command line. Take every known one, then call [`finish`](Self::finish).
#[derive(Debug, Clone)]
pub struct Flags {
    given: Vec<(String, String)>,
    known: Vec<&'static str>,
}

impl Flags {
    /// Parses `--name=value` arguments.
    ///
    /// # Errors
    ///
    /// If an argument has another form, or a flag is repeated.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut given: Vec<(String, String)> = Vec::new();
        for argument in arguments {
            let flag = argument.strip_prefix("--").and_then(|rest| rest.split_once('='));
            let Some((name, value)) = flag.filter(|(name, _)| !name.is_empty()) else {
                return Err(FlagError(format!("{argument:?}: arguments have the form --name=value")));
            };
            if given.iter().any(|(earlier, _)| earlier == name) {
                return Err(FlagError(format!("--{name} is repeated")));
            }
            given.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self { given, known: Vec::new() })
    }

    /// Takes an integer within `allowed`.
    ///
    /// # Errors
    ///
    /// If the value is not an integer or out of range.
    pub fn integer(
        &mut self,
        name: &'static str,
        default: u64,
        allowed: RangeInclusive<u64>,
    ) -> Result<u64, FlagError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let (low, high) = (allowed.start(), allowed.end());
        // Only digits, because `parse` accepts "+8" too.
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let value = text.parse().ok().filter(|value| digits && allowed.contains(value));
        value.ok_or_else(|| {
            FlagError::new(name, Quoted(&text), format_args!("allowed are integers from {low} to {high}"))
        })
    }

    /// Takes one of the named choices.
    ///
    /// # Errors
    ///
    /// If the value is not one of them.
    pub fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        default: T,
        choices: &[(&'static str, T)],
    ) -> Result<T, FlagError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        choices.iter().find(|(choice, _)| *choice == text).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
            FlagError::new(name, Quoted(&text), format_args!("allowed are {}", names.join(", ")))
        })
    }

    /// Takes one of the named choices, or a default with a special name.
    ///
    /// # Errors
    ///
    /// If the value is not one of them.
    pub fn choice_or<T: Copy>(
        &mut self,
        name: &'static str,
        word: &'static str,
        default: T,
        choices: &[(&'static str, T)],
    ) -> Result<T, FlagError> {
        self.choice(name, default, &[&[(word, default)], choices].concat())
    }

    /// Takes `true` or `false`.
    ///
    /// # Errors
    ///
    /// If the value is neither.
    pub fn boolean(&mut self, name: &'static str, default: bool) -> Result<bool, FlagError> {
        self.choice(name, default, &[("true", true), ("false", false)])
    }

    /// Takes a text.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let index = self.given.iter().position(|(given, _)| given == name)?;
        Some(self.given.swap_remove(index).1)
    }

    /// Takes a text. An empty value counts as absent, so that a platform's parameter can have a default.
    pub fn optional(&mut self, name: &'static str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// Completes parsing, after every known flag was taken.
    ///
    /// # Errors
    ///
    /// If an unknown flag remains.
    pub fn finish(self) -> Result<(), FlagError> {
        match self.given.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(FlagError(format!("unknown flag --{name}; known flags are --{}", self.known.join(", --"))))
            }
        }
    }
}

/// Names the values of an enumeration for the command line and the result: `CHOICES` lists all, `name` returns one.
///
/// ```
/// #[derive(Clone, Copy)]
/// enum Order {
///     Ascending,
///     AsGiven,
/// }
/// assay_harness::choices!(Order { "ascending" => Ascending, "as-given" => AsGiven });
/// assert_eq!(Order::AsGiven.name(), Order::CHOICES[1].0);
/// ```
#[macro_export]
macro_rules! choices {
    ($kind:ident { $($name:literal => $value:ident),+ $(,)? }) => {
        impl $kind {
            /// All values by name.
            pub const CHOICES: [(&'static str, Self); [$($name),+].len()] = [$(($name, Self::$value)),+];

            /// The name on the command line and in the result.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }
    };
}

/// Returns the name of a choice.
#[must_use]
pub fn name<T: PartialEq>(value: &T, choices: &[(&'static str, T)]) -> &'static str {
    choices.iter().find(|(_, choice)| choice == value).map_or("", |(name, _)| name)
}

/// Formats a value; quoted if it is empty or has special characters.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = !self.0.is_empty() && self.0.chars().all(|c| c.is_ascii_graphic() && c != '"');
        if plain { f.write_str(self.0) } else { write!(f, "{:?}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    fn flags(arguments: &[&str]) -> Flags {
        Flags::parse(arguments.iter().map(|&a| a.to_owned())).expect("well-formed")
    }

    #[test]
    fn absent_flag_has_its_default() {
        let mut flags = flags(&[]);
        assert_eq!(flags.integer("rows", 7, 1..=9), Ok(7));
        assert_eq!(flags.boolean("ceilings", true), Ok(true));
        assert_eq!(flags.finish(), Ok(()));
    }

    #[test]
    fn error_names_flag_value_and_range() {
        for (value, shown) in
            [("0", "0"), ("10", "10"), ("-1", "-1"), ("+8", "+8"), ("8.5", "8.5"), ("", "\"\""), ("8 ", "\"8 \"")]
        {
            let error = flags(&[&format!("--rows={value}")]).integer("rows", 7, 1..=9).unwrap_err();
            assert_eq!(error.to_string(), format!("--rows={shown}: allowed are integers from 1 to 9"));
        }
    }

    #[test]
    fn invalid_choice_lists_the_choices() {
        let error = flags(&["--key=rsa"]).choice("key", 0, &[("toy", 0), ("dpf", 1)]).unwrap_err();
        assert_eq!(error.to_string(), "--key=rsa: allowed are toy, dpf");
    }

    #[test]
    fn text_is_unrestricted_and_empty_optional_is_none() {
        let mut flags = flags(&["--state=/a=b c", "--server=", "--history="]);
        assert_eq!(flags.optional("state").as_deref(), Some("/a=b c"));
        assert_eq!((flags.optional("server"), flags.optional("cache")), (None, None));
        assert_eq!(flags.text("history").as_deref(), Some(""));
        assert_eq!(flags.finish(), Ok(()));
    }

    #[test]
    fn unknown_repeated_and_malformed_flags_are_rejected() {
        let mut unknown = flags(&["--rowz=1"]);
        unknown.integer("rows", 7, 1..=9).unwrap();
        assert_eq!(unknown.finish().unwrap_err().to_string(), "unknown flag --rowz; known flags are --rows");
        for bad in [&["--rows=1", "--rows=2"][..], &["--rows"], &["rows=1"], &["--=1"], &["-rows=1"]] {
            assert!(Flags::parse(bad.iter().map(|&a| a.to_owned())).is_err(), "{bad:?}");
        }
    }
}
