package report

import (
	"strconv"
	"strings"
	"testing"
)

func TestPrintable_RetainsPrintableText(t *testing.T) {
	for _, text := range []string{
		"plain", `a "b" \c`, "no\u00a0break", "\u00a0\"", "\x1b[31m\u00a0\"red\"", "a\u2028b", "a\u202eb", "\xff\"", "tab\tand\nline", "\u0000\\",
	} {
		once := Printable(text)
		if strings.ContainsFunc(once, func(r rune) bool { return !strconv.IsGraphic(r) }) {
			t.Errorf("%q prints as %q", text, once)
		}
		if again := Printable(once); again != once {
			t.Errorf("%q prints as %s, and that as %s", text, once, again)
		}
	}
}
