package analysis

import (
	"reflect"
	"slices"
	"unicode/utf8"
)

// mostSentences bounds the bytes, as JSON, of all sentences of an analysis together. They quote programs and other reports, and an
// analysis with more bytes than readers accept has no verdict.
const mostSentences = 4 << 20

// mostExcluded bounds the exclusions in an analysis, because a run may lose 100,000 trials.
const mostExcluded = 20_000

// Written returns the analysis for the ledger. It lists the first exclusions and counts the others, because all of them may exceed
// MostBytes.
func (a *Analysis) Written() *Analysis {
	out := *a
	if more := len(a.Excluded) - mostExcluded; more > 0 {
		out.Excluded, out.MoreExcluded = a.Excluded[:mostExcluded], a.MoreExcluded+more
	}
	return &out
}

// Shorten truncates the longest sentences of an analysis until all sentences together have at most mostSentences bytes.
func (a *Analysis) Shorten() {
	var texts []reflect.Value
	var lengths []int
	_ = walk(reflect.ValueOf(a), "", func(value reflect.Value, field string) *unsound {
		// Deciding and labelling words have types other than string, except for the name of a limit. Values in a map cannot be set.
		if value.CanSet() && sentences[field] && field != "ceiling" && value.Type() == reflect.TypeFor[string]() {
			texts, lengths = append(texts, value), append(lengths, jsonLength(value.String()))
		}
		return nil
	})
	slices.Sort(lengths)
	left := mostSentences
	for i, length := range lengths {
		if share := left / (len(lengths) - i); length > share {
			for _, text := range texts {
				text.SetString(cut(text.String(), share))
			}
			return
		}
		left -= length
	}
}

// cut truncates a text to at most a number of bytes as JSON.
func cut(text string, most int) string {
	if jsonLength(text) <= most {
		return text
	}
	const more = "…"
	left := most - len(more)
	for i, r := range text {
		if left -= jsonLength(string(r)); left < 0 {
			return text[:i] + more
		}
	}
	return text
}

// jsonLength returns an upper bound of the bytes of a text as JSON.
func jsonLength(text string) int {
	const escaped = 6 // As \u0000.
	length := 0
	for _, r := range text {
		switch {
		case r < ' ' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
			length += escaped
		default:
			length += utf8.RuneLen(r)
		}
	}
	return length
}
