package report

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A digest of an image in a ledger may have any characters.
func TestMarkdown_ControlAndDirectionCharactersAreEscaped(t *testing.T) {
	for name, hostile := range map[string]string{
		"an escape sequence":          "sha256:\x1b[31mred\x1b]8;;https://evil.example.org\x07link",
		"a change of direction":       "sha256:\u202eabc\u2066def",
		"an invisible character":      "a\u200bb\ufeffc",
		"a bell and a backspace":      "ok\x07\x08\x08no",
		"a control sequence of 8 bit": "a\u009b31mb",
		"invalid UTF-8":               "a\xff\xfeb",
		"a line and a paragraph":      "a\u2028b\u2029c\nd\re",
	} {
		t.Run(name, func(t *testing.T) {
			for how, got := range map[string]string{"text": Escape(hostile), "code": Code(hostile)} {
				if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsGraphic(r) }) {
					t.Errorf("%s: %q", how, got)
				}
			}
		})
	}
	if got := Escape("plain text, 5 µs ±1 % → ok"); got != "plain text, 5 µs ±1 % → ok" {
		t.Errorf("plain text becomes %q", got)
	}
}
