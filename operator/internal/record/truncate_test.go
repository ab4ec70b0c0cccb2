package record

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The API server must return the text of a status or event unchanged, so that reconciles detect no difference.
func TestTruncate_ValidAndCutAtACharacter(t *testing.T) {
	for _, text := range []string{
		"", "short", "naïve", strings.Repeat("é", 20), strings.Repeat("€𝄞", 9), "a\xffb", "\xe2\x82", strings.Repeat("\xff", 40),
	} {
		for most := len("…"); most < 50; most++ {
			got := Truncate(text, most)
			if len(got) > most || !utf8.ValidString(got) {
				t.Errorf("%q in %d bytes is %q", text, most, got)
			}
			valid := strings.ToValidUTF8(text, "?")
			if kept, cut := strings.CutSuffix(got, "…"); !strings.HasPrefix(valid, kept) || cut != (len(valid) > most) {
				t.Errorf("%q in %d bytes is %q, which is not a prefix of it", text, most, got)
			}
		}
	}
	if got := Truncate(strings.Repeat("é", 10), 13); got != "ééééé…" {
		t.Errorf("ten characters of two bytes in 13 bytes are %q", got)
	}
}
