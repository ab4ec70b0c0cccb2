package manifest

import "strings"

// suggestion is which of the known words somebody probably meant, or nothing.
func suggestion(word string, known []string) string {
	best, least := "", 0
	for _, candidate := range known {
		if candidate == "" {
			continue
		}
		distance := edits(strings.ToLower(word), strings.ToLower(candidate))
		if len(word) > 2 && strings.HasPrefix(strings.ToLower(candidate), strings.ToLower(word)) {
			distance = 1 // Somebody stopped early, such as with lower for LowerIsBetter.
		}
		if best == "" || distance < least {
			best, least = candidate, distance
		}
	}
	// With more changes than a third of the word any word would do.
	if best == "" || least > max(1, len(word)/3) {
		return ""
	}
	return "; did you mean " + best + "?"
}

// edits is the Damerau-Levenshtein distance of adjacent swaps (optimal string alignment): the insertions, deletions, replacements and
// swaps of neighbours that make one word of the other.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			replaced := rows[i-1][j-1]
			if x[i-1] != y[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
