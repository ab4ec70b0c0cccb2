package record

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Source is the ledger object that a record was read from.
type Source struct {
	// Key of the object, relative to the ledger.
	Key string
	// SHA256 of the object's bytes, in hex.
	SHA256 string
}

// SHA256 is the sum of an object's bytes, in hex.
func SHA256(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Shorten is a text, or so many characters of its beginning where it has more.
func Shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Truncate is a text as the API server takes one of so many bytes: valid, and cut at a character.
func Truncate(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}

// Problem is an object in the ledger that cannot be used. It is counted and shown, and it never stops the analysis.
type Problem struct {
	Source
	// Reason is what was found and what was expected.
	Reason string
}

// Evidence is what a ledger holds beside the experiment. Every slice is in the order of the keys.
type Evidence struct {
	// Waves are the plans. A ledger written by hand may have none: then the attempts are taken at their word.
	Waves    []Wave
	Attempts []Attempt
	// Leases are those under which the blocks ran.
	Leases   Leases
	Problems []Problem
	// Unfinished are the trials that were begun and have no attempt of that execution.
	Unfinished []Started
	// Sealed are the sha256 of attempt objects by key, as an earlier analysis found them.
	Sealed map[string]string
}
