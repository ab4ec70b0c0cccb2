package analysis

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// Sentences that are too long together lose the ends of the longest ones, and nothing else is touched.
func TestShorten_TruncatesLongestSentences(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	letters := []string{"a", "é", "\x01", "<", "\u2028", "\xff", `"`, "𝄞"}
	long := strings.Repeat("verdict ", 100)
	for range 20 {
		of := Analysis{Layout: long, Candidates: []Candidate{{Name: strings.Repeat("n", 60), Reason: "it is slower"}}}
		of.Gates = []GateResult{{Gate: "fast", Message: "missed", Caps: []Cap{{Reason: CapLostApart, Detail: "they differ"}}}}
		for range 1 + random.IntN(30) {
			of.Warnings = append(of.Warnings, strings.Repeat(letters[random.IntN(len(letters))], random.IntN(1<<20)))
		}
		before := of
		before.Warnings = append([]string(nil), of.Warnings...)
		of.Shorten()
		length := 0
		for i, warning := range of.Warnings {
			raw, err := json.Marshal(warning)
			if err != nil {
				t.Fatal(err)
			}
			length += len(raw) - 2
			whole := strings.TrimSuffix(warning, "…")
			if warning != before.Warnings[i] && (!strings.HasPrefix(before.Warnings[i], whole) || whole == warning) ||
				utf8.ValidString(before.Warnings[i]) && !utf8.ValidString(warning) {
				t.Fatalf("%.100q… was made of %.100q…", warning, before.Warnings[i])
			}
		}
		if length > mostSentences {
			t.Errorf("they have %d bytes", length)
		}
		if of.Layout != long || of.Candidates[0] != before.Candidates[0] || of.Gates[0].Message != "missed" ||
			of.Gates[0].Caps[0] != before.Gates[0].Caps[0] {
			t.Errorf("a short sentence was truncated: %+v", of)
		}
	}
}
