// Package join builds a text out of many short ones, in two ways.
package join

import "strings"

// Plus copies the result for every word that it adds.
func Plus(words []string) string {
	text := ""
	for _, word := range words {
		text += word
	}
	return text
}

// Builder copies when its buffer is full, which doubles.
func Builder(words []string) string {
	var text strings.Builder
	for _, word := range words {
		text.WriteString(word)
	}
	return text.String()
}
