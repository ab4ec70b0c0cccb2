package record

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What a status or an event says comes back from the API server as it was sent, so that no pass finds it changed.
func TestATruncatedTextIsValidAndCutAtACharacter(t *testing.T) {
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
				t.Errorf("%q in %d bytes is %q, which is not its beginning", text, most, got)
			}
		}
	}
	if got := Truncate(strings.Repeat("é", 10), 13); got != "ééééé…" {
		t.Errorf("ten of two bytes in 13 bytes are %q", got)
	}
}
