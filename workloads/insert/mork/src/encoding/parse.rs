//! From a text to bytes: the loader's parser, recursive descent over the text, tags written on the way.

use super::{MAX_ARITY, MAX_DEPTH, Unencodable, check_length, push_symbol, push_variable};
use crate::token;
use crate::value::Names;

/// Reads texts. It keeps the list of variable names of one expression, and nothing else.
#[derive(Debug)]
pub struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: Names<'a>,
}

impl<'a> Parser<'a> {
    /// A parser at the beginning of a text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, names: Names::default() }
    }

    /// Appends the bytes of the next top-level expression. `false` at the end of the text.
    ///
    /// # Errors
    ///
    /// When the text is no expression or the expression has no byte form; `out` then ends with a part of it.
    pub fn next_expression(&mut self, out: &mut Vec<u8>) -> Result<bool, Unencodable> {
        self.skip_space();
        if self.peek().is_none() {
            return Ok(false);
        }
        self.names.clear();
        let start = out.len();
        self.item(MAX_DEPTH, out)?;
        check_length(out.len() - start)?;
        Ok(true)
    }

    fn item(&mut self, depth: usize, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        match self.peek() {
            None => Err(self.error("the text ends within an expression")),
            Some(b')') => Err(self.error("a parenthesis is closed that was not opened")),
            Some(b'(') => self.expression(depth.checked_sub(1).ok_or(Unencodable::TooDeep)?, out),
            Some(quote @ (token::TEXT_QUOTE | token::URI_QUOTE)) => {
                let symbol = self.quoted(quote)?;
                push_symbol(symbol.as_bytes(), out)
            }
            Some(_) => {
                let name = self.name();
                match token::variable(name) {
                    Some(variable) => push_variable(self.names.level(variable), out),
                    None => push_symbol(name.as_bytes(), out),
                }
            }
        }
    }

    fn expression(&mut self, depth: usize, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        self.at += 1;
        let tag = out.len();
        out.push(0);
        let mut items = 0;
        loop {
            self.skip_space();
            if self.peek() == Some(b')') {
                self.at += 1;
                break;
            }
            self.item(depth, out)?;
            items += 1;
        }
        if items > MAX_ARITY {
            return Err(Unencodable::TooManyItems(items));
        }
        out[tag] = items as u8;
        Ok(())
    }

    fn name(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.bytes().position(token::is_separator).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// A token with its quotes.
    fn quoted(&mut self, quote: u8) -> Result<&'a str, Unencodable> {
        let rest = &self.text[self.at..];
        let mut bytes = rest.bytes().enumerate().skip(1);
        while let Some((at, byte)) = bytes.next() {
            if byte == b'\\' {
                bytes.next();
            } else if byte == quote {
                self.at += at + 1;
                return Ok(&rest[..=at]);
            }
        }
        Err(self.error("a quote is not closed"))
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, problem: &'static str) -> Unencodable {
        Unencodable::Syntax { at: self.at, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Vec<u8>>, Unencodable> {
        let mut parser = Parser::new(text);
        let mut all = Vec::new();
        loop {
            let mut out = Vec::new();
            if !parser.next_expression(&mut out)? {
                return Ok(all);
            }
            all.push(out);
        }
    }

    #[test]
    fn a_text_may_hold_several_expressions_with_variables_of_their_own() {
        assert_eq!(
            parse(" (f $x $x)\n($x)\t() a ").unwrap(),
            [&b"\x03\xc1f\xc0\x80"[..], b"\x01\xc0", b"\x00", b"\xc1a"]
        );
        assert_eq!(parse(r#"("a \" (b" `u v`)"#).unwrap(), [b"\x02\xc9\"a \\\" (b\"\xc5`u v`"]);
        assert_eq!(parse("  ").unwrap(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn parse_error_has_position() {
        let syntax = |at, problem| Unencodable::Syntax { at, problem };
        for (text, why) in [
            ("(f (g)", syntax(6, "the text ends within an expression")),
            (" )", syntax(1, "a parenthesis is closed that was not opened")),
            (r#"(f "x)"#, syntax(3, "a quote is not closed")),
            (r#"(f "x\""#, syntax(3, "a quote is not closed")),
        ] {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
        assert_eq!(parse(&"(".repeat(MAX_DEPTH + 1)).unwrap_err(), Unencodable::TooDeep);
        assert_eq!(parse(&format!("({})", "a ".repeat(64))).unwrap_err(), Unencodable::TooManyItems(64));
        assert_eq!(parse(&"x".repeat(64)).unwrap_err(), Unencodable::SymbolTooLong(64));
        assert_eq!(
            parse(&format!("(({})({}))", "_ ".repeat(60), "_ ".repeat(5))).unwrap_err(),
            Unencodable::TooManyVariables
        );
    }
}
