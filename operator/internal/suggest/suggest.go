// Package suggest formats the end of messages about unknown words: "did you mean X? Allowed are X and Y".
package suggest

import (
	"slices"
	"strings"

	"github.com/hbollon/go-edlib"
)

// mostMeant is the largest number of suggestions.
const mostMeant = 3

// mostLetters limits the length of words that are compared, because the cost is the product of two lengths.
const mostLetters = 80

// Allowed returns the nearest of the known words, if any is near, and the list of all. The suggestion is first because messages are cut to
// the length of a column or of an event, and lists are long.
func Allowed[T ~string](word string, known []T) string {
	texts := make([]string, 0, len(known))
	for _, one := range known {
		if one != "" {
			texts = append(texts, string(one))
		}
	}
	list := "allowed are " + strings.Join(texts, ", ")
	switch len(texts) {
	case 0:
		return "there are none"
	case 1:
		list = "allowed is " + texts[0]
	}
	if near := Nearest(word, texts); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "? A" + list[1:]
	}
	return list
}

// Meant returns "; did you mean X?" with the nearest known words, or "" if no word is near.
func Meant(word string, known []string) string {
	near := Nearest(word, known)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// Nearest returns the known words with the smallest edit distance to word (insertions, deletions, replacements and swaps of neighbours),
// ignoring case, if it is at most a third of the length of word.
// For a word of three letters or more, the known words that begin or end with it are near as well.
func Nearest(word string, known []string) []string {
	if len(word) > mostLetters {
		return nil
	}
	word = strings.ToLower(word)
	least := max(1, len(word)/3)
	var near []string
	for _, one := range known {
		if len(one) > mostLetters {
			continue
		}
		lower := strings.ToLower(one)
		distance := edlib.OSADamerauLevenshteinDistance(word, lower)
		if len(word) > 2 && (strings.HasPrefix(lower, word) || strings.HasSuffix(lower, word)) {
			distance = min(distance, 1) // The word is incomplete, such as lower for LowerIsBetter.
		}
		if one == "" || distance > least || slices.Contains(near, one) {
			continue
		}
		if distance < least {
			near, least = nil, distance
		}
		near = append(near, one)
	}
	return near[:min(mostMeant, len(near))]
}
