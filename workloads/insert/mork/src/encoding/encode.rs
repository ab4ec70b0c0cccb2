//! From a value to bytes, without a text in between.

use super::{MAX_ARITY, MAX_DEPTH, Unencodable, check_length, push_symbol, push_variable};
use crate::token;
use crate::value::{ERROR, Names, TYPE, Value};

/// Appends the bytes of one top-level expression.
///
/// # Errors
///
/// When the value has no byte form; `out` then ends with a part of it.
#[inline]
pub fn encode(value: &Value, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let start = out.len();
    item(value, &mut Names::default(), MAX_DEPTH, out)?;
    check_length(out.len() - start)
}

/// Appends the bytes of the rule `(= left right)`, whose sides share their variables.
///
/// # Errors
///
/// When a side has no byte form.
pub fn encode_rule(left: &Value, right: &Value, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let start = out.len();
    let mut names = Names::default();
    out.push(3);
    push_symbol(b"=", out)?;
    item(left, &mut names, MAX_DEPTH - 1, out)?;
    item(right, &mut names, MAX_DEPTH - 1, out)?;
    check_length(out.len() - start)
}

fn item<'a>(value: &'a Value, names: &mut Names<'a>, depth: usize, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    match value {
        Value::Atom(name) => atom(name, names, out),
        Value::Long(number) => push_symbol(itoa::Buffer::new().format(*number).as_bytes(), out),
        Value::SExpr(items) => {
            if items.len() > MAX_ARITY {
                return Err(Unencodable::TooManyItems(items.len()));
            }
            let depth = depth.checked_sub(1).ok_or(Unencodable::TooDeep)?;
            out.push(items.len() as u8);
            items.iter().try_for_each(|value| item(value, names, depth, out))
        }
        Value::Nil => {
            out.push(0);
            Ok(())
        }
        Value::Bool(true) => push_symbol(b"true", out),
        Value::Bool(false) => push_symbol(b"false", out),
        Value::Float(number) => push_symbol(token::float(*number).as_bytes(), out),
        Value::String(text) => quoted(text, token::TEXT_QUOTE, out),
        Value::Uri(text) => quoted(text, token::URI_QUOTE, out),
        Value::Error(message, value) => {
            let depth = depth.checked_sub(1).ok_or(Unencodable::TooDeep)?;
            out.push(3);
            push_symbol(ERROR.as_bytes(), out)?;
            quoted(message, token::TEXT_QUOTE, out)?;
            item(value, names, depth, out)
        }
        Value::Type(value) => {
            let depth = depth.checked_sub(1).ok_or(Unencodable::TooDeep)?;
            out.push(2);
            push_symbol(TYPE.as_bytes(), out)?;
            item(value, names, depth, out)
        }
    }
}

#[inline]
fn atom<'a>(name: &'a str, names: &mut Names<'a>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    match token::variable(name) {
        Some(variable) if variable.bytes().any(token::is_separator) => Err(Unencodable::NotAnAtom(name.to_owned())),
        Some(variable) => push_variable(names.level(variable), out),
        None if !token::is_atom(name) => Err(Unencodable::NotAnAtom(name.to_owned())),
        None => push_symbol(name.as_bytes(), out),
    }
}

fn quoted(text: &str, quote: u8, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let mut symbol = Vec::with_capacity(text.len() + 2);
    token::write_quoted(text, quote, &mut symbol);
    push_symbol(&symbol, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::MAX_PATH;

    fn encode(value: &Value) -> Result<Vec<u8>, Unencodable> {
        let mut out = Vec::new();
        super::encode(value, &mut out).map(|()| out)
    }

    #[test]
    fn a_fact_is_an_arity_and_three_symbols() {
        let fact = Value::expression([Value::atom("fact"), Value::Long(12), Value::atom("value-12")]);
        assert_eq!(encode(&fact).unwrap(), b"\x03\xc4fact\xc212\xc8value-12");
    }

    #[test]
    fn a_variable_is_new_once() {
        let [x, y, wild] = ["$x", "$y", "_"].map(Value::atom);
        let value = Value::expression([x.clone(), wild.clone(), y.clone(), x, wild, y]);
        assert_eq!(encode(&value).unwrap(), [6, 0xc0, 0xc0, 0xc0, 0x80, 0xc0, 0x82]);
    }

    #[test]
    fn the_sides_of_a_rule_share_their_variables() {
        let (left, right) = (Value::expression([Value::atom("f"), Value::atom("$x")]), Value::atom("$x"));
        let mut out = Vec::new();
        encode_rule(&left, &right, &mut out).unwrap();
        assert_eq!(out, encode(&Value::expression([Value::atom("="), left, right])).unwrap());
        assert_eq!(out, b"\x03\xc1=\x02\xc1f\xc0\x80");
    }

    #[test]
    fn unencodable_value_is_reported_with_the_reason() {
        let nested = |depth| (0..depth).fold(Value::Nil, |inner, _| Value::expression([inner]));
        let long = Value::expression(vec![Value::atom("x".repeat(63)); 63]);
        for (value, why) in [
            (Value::expression(vec![Value::Nil; 64]), Unencodable::TooManyItems(64)),
            (Value::atom("x".repeat(64)), Unencodable::SymbolTooLong(64)),
            (Value::String("x".repeat(62)), Unencodable::SymbolTooLong(64)),
            (Value::atom("a b"), Unencodable::NotAnAtom("a b".into())),
            (Value::atom("$a)"), Unencodable::NotAnAtom("$a)".into())),
            (Value::atom(""), Unencodable::NotAnAtom(String::new())),
            (
                Value::expression([
                    Value::expression(vec![Value::atom("_"); 60]),
                    Value::expression(vec![Value::atom("_"); 5]),
                ]),
                Unencodable::TooManyVariables,
            ),
            (nested(MAX_DEPTH + 1), Unencodable::TooDeep),
        ] {
            assert_eq!(encode(&value).unwrap_err(), why);
        }
        assert!(encode(&nested(MAX_DEPTH)).is_ok());
        let five = encode(&Value::expression(vec![long.clone(); 5])).unwrap_err();
        assert!(matches!(five, Unencodable::TooLong(bytes) if bytes > MAX_PATH), "{five}");
        assert!(encode(&Value::expression(vec![long; 4])).unwrap().len() <= MAX_PATH);
    }
}
