//! Tokens: the text form of values other than expressions, and their contents.
//!
//! Text and bytes share the tokens: a symbol's bytes are its token's text.

/// The name of the variable that an atom is, without its sigil: empty for `_` and for `$` alone, which stand for a
/// variable that occurs nowhere else.
/// `None` for an atom that is no variable.
#[must_use]
pub fn variable(atom: &str) -> Option<&str> {
    match atom.as_bytes() {
        b"_" | b"$" => Some(""),
        [b'$' | b'&' | b'\'', _, ..] => Some(&atom[1..]),
        _ => None,
    }
}

/// Whether the byte ends an unquoted token.
#[must_use]
#[inline]
pub const fn is_separator(byte: u8) -> bool {
    SEPARATORS[byte as usize]
}

/// A table, because every byte of every name is looked up in it.
const SEPARATORS: [bool; 256] = {
    let (separators, mut table) = (b" \t\n\r\x0c()\"`", [false; 256]);
    let mut i = 0;
    while i < separators.len() {
        table[separators[i] as usize] = true;
        i += 1;
    }
    table
};

/// Whether an atom's name is one token, so that its text reads as one atom.
#[must_use]
pub fn is_atom(name: &str) -> bool {
    !name.is_empty() && !name.bytes().any(is_separator)
}

/// The quote of texts.
pub const TEXT_QUOTE: u8 = b'"';
/// The quote of resources' names.
pub const URI_QUOTE: u8 = b'`';

/// Appends `text` within quotes; quotes and backslashes in it get a backslash before them.
pub fn write_quoted(text: &str, quote: u8, out: &mut Vec<u8>) {
    out.push(quote);
    for &byte in text.as_bytes() {
        if byte == quote || byte == b'\\' {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(quote);
}

/// The text within the quotes of a token.
pub(crate) fn read_quoted(token: &[u8], quote: u8) -> Option<String> {
    let inner = token.strip_prefix(&[quote])?.strip_suffix(&[quote])?;
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        text.push(match byte {
            b'\\' => *bytes.next()?,
            byte if byte == quote => return None,
            byte => byte,
        });
    }
    String::from_utf8(text).ok()
}

/// A floating-point number in the shortest form that reads back as the same, never as a whole number.
#[must_use]
pub fn float(number: f64) -> String {
    format!("{number:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn variables_have_a_sigil_and_a_name() {
        let cases = [
            ("$x", Some("x")),
            ("&x", Some("x")),
            ("'x", Some("x")),
            ("_", Some("")),
            ("$", Some("")),
            ("&", None),
            ("x", None),
        ];
        for (atom, name) in cases {
            assert_eq!(variable(atom), name, "{atom}");
        }
    }

    #[test]
    fn a_token_reads_as_what_was_written() {
        for (token, value) in [
            ("true", Value::Bool(true)),
            ("-7", Value::Long(-7)),
            ("+7", Value::atom("+7")),
            ("007", Value::atom("007")),
            ("9223372036854775808", Value::atom("9223372036854775808")),
            ("1.5", Value::Float(1.5)),
            ("1e300", Value::Float(1e300)),
            ("NaN", Value::Float(f64::NAN)),
            ("-0.0", Value::Float(-0.0)),
            ("1.", Value::atom("1.")),
            (r#""a \"b\" \\""#, Value::String(r#"a "b" \"#.into())),
            ("`http://x`", Value::Uri("http://x".into())),
            ("value-1", Value::atom("value-1")),
        ] {
            assert_eq!(Value::read(token.as_bytes()), Some(value), "{token}");
        }
        for broken in [r#"""#, r#""a"b""#, r#""a\"#, "a b", "a(b", ""] {
            assert_eq!(Value::read(broken.as_bytes()), None, "{broken}");
        }
        assert_eq!(Value::read(&[b'"', 0xff, b'"']), None);
    }

    #[test]
    fn quoting_is_undone_by_reading() {
        let mut out = Vec::new();
        write_quoted(r#"say "\`" twice"#, TEXT_QUOTE, &mut out);
        assert_eq!(Value::read(&out), Some(Value::String(r#"say "\`" twice"#.into())));
    }
}
