//! Parameters on the command line: `--batch-size=8`.
//!
//! A flag is the kebab-case of the parameter's name. A bad one is refused with a message that names the flag, what was found and
//! what is allowed; the program then exits with [`USAGE`] and prints nothing on standard output.

use std::fmt;
use std::ops::RangeInclusive;

/// The exit code of a program that was called with bad parameters.
pub const USAGE: u8 = 2;

/// Why a command line was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagError(String);

impl FlagError {
    /// A rule of the kernel's own, e.g. one that involves two parameters.
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

/// The flags of one command line. Take every known one, then call [`finish`](Self::finish).
#[derive(Debug, Clone)]
pub struct Flags {
    given: Vec<(String, String)>,
    known: Vec<&'static str>,
}

impl Flags {
    /// Splits `--name=value` arguments.
    ///
    /// # Errors
    ///
    /// When an argument has another form, or a flag is given twice.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut given: Vec<(String, String)> = Vec::new();
        for argument in arguments {
            let flag = argument.strip_prefix("--").and_then(|rest| rest.split_once('='));
            let Some((name, value)) = flag.filter(|(name, _)| !name.is_empty()) else {
                return Err(FlagError(format!("{argument:?}: an argument has the form --name=value")));
            };
            if given.iter().any(|(earlier, _)| earlier == name) {
                return Err(FlagError(format!("--{name} is given twice")));
            }
            given.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self { given, known: Vec::new() })
    }

    /// A whole number within `allowed`.
    ///
    /// # Errors
    ///
    /// When the value is no whole number, or not allowed.
    pub fn integer(
        &mut self,
        name: &'static str,
        default: u64,
        allowed: RangeInclusive<u64>,
    ) -> Result<u64, FlagError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let (low, high) = (allowed.start(), allowed.end());
        // Only digits: `parse` would also take "+8".
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let value = text.parse().ok().filter(|value| digits && allowed.contains(value));
        value.ok_or_else(|| {
            FlagError::new(name, Quoted(&text), format_args!("a whole number from {low} to {high} is allowed"))
        })
    }

    /// One of the named choices.
    ///
    /// # Errors
    ///
    /// When the value names none of them.
    pub fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        default: T,
        choices: &[(&'static str, T)],
    ) -> Result<T, FlagError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        choices.iter().find(|(choice, _)| *choice == text).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
            FlagError::new(name, Quoted(&text), format_args!("one of {} is allowed", names.join(", ")))
        })
    }

    /// One of the named choices, or the default by a word of its own.
    ///
    /// # Errors
    ///
    /// When the value names none of them.
    pub fn choice_or<T: Copy>(
        &mut self,
        name: &'static str,
        word: &'static str,
        default: T,
        choices: &[(&'static str, T)],
    ) -> Result<T, FlagError> {
        self.choice(name, default, &[&[(word, default)], choices].concat())
    }

    /// `true` or `false`.
    ///
    /// # Errors
    ///
    /// When the value is neither.
    pub fn boolean(&mut self, name: &'static str, default: bool) -> Result<bool, FlagError> {
        self.choice(name, default, &[("true", true), ("false", false)])
    }

    /// Any text.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let index = self.given.iter().position(|(given, _)| given == name)?;
        Some(self.given.swap_remove(index).1)
    }

    /// Any text. An empty one counts as none, so that a platform's parameter can have a default.
    pub fn optional(&mut self, name: &'static str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// Declares that every known flag has been taken.
    ///
    /// # Errors
    ///
    /// When a flag is left that nobody asked for.
    pub fn finish(self) -> Result<(), FlagError> {
        match self.given.first() {
            None => Ok(()),
            Some((name, _)) => Err(FlagError(format!("--{name} is unknown; known are --{}", self.known.join(", --")))),
        }
    }
}

/// Gives the values of an enumeration their names on a command line and in a result: all are its `CHOICES`, and `name` is that of one.
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
            /// All of them, by their names on a command line.
            pub const CHOICES: [(&'static str, Self); [$($name),+].len()] = [$(($name, Self::$value)),+];

            /// Its name on a command line and in a result.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }
    };
}

/// What the choice `value` is called.
#[must_use]
pub fn name<T: PartialEq>(value: &T, choices: &[(&'static str, T)]) -> &'static str {
    choices.iter().find(|(_, choice)| choice == value).map_or("", |(name, _)| name)
}

/// A value as found: bare where that is clear, quoted where it is empty or has characters that would mislead.
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
    fn a_flag_that_is_not_given_has_its_default() {
        let mut flags = flags(&[]);
        assert_eq!(flags.integer("rows", 7, 1..=9), Ok(7));
        assert_eq!(flags.boolean("ceilings", true), Ok(true));
        assert_eq!(flags.finish(), Ok(()));
    }

    #[test]
    fn the_message_names_flag_value_and_range() {
        for (value, shown) in
            [("0", "0"), ("10", "10"), ("-1", "-1"), ("+8", "+8"), ("8.5", "8.5"), ("", "\"\""), ("8 ", "\"8 \"")]
        {
            let error = flags(&[&format!("--rows={value}")]).integer("rows", 7, 1..=9).unwrap_err();
            assert_eq!(error.to_string(), format!("--rows={shown}: a whole number from 1 to 9 is allowed"));
        }
    }

    #[test]
    fn a_choice_lists_the_choices() {
        let error = flags(&["--key=rsa"]).choice("key", 0, &[("toy", 0), ("dpf", 1)]).unwrap_err();
        assert_eq!(error.to_string(), "--key=rsa: one of toy, dpf is allowed");
    }

    #[test]
    fn a_text_may_hold_anything_and_an_empty_optional_one_is_none() {
        let mut flags = flags(&["--state=/a=b c", "--server=", "--history="]);
        assert_eq!(flags.optional("state").as_deref(), Some("/a=b c"));
        assert_eq!((flags.optional("server"), flags.optional("cache")), (None, None));
        assert_eq!(flags.text("history").as_deref(), Some(""));
        assert_eq!(flags.finish(), Ok(()));
    }

    #[test]
    fn unknown_and_repeated_flags_and_other_forms_are_refused() {
        let mut unknown = flags(&["--rowz=1"]);
        unknown.integer("rows", 7, 1..=9).unwrap();
        assert_eq!(unknown.finish().unwrap_err().to_string(), "--rowz is unknown; known are --rows");
        for bad in [&["--rows=1", "--rows=2"][..], &["--rows"], &["rows=1"], &["--=1"], &["-rows=1"]] {
            assert!(Flags::parse(bad.iter().map(|&a| a.to_owned())).is_err(), "{bad:?}");
        }
    }
}
