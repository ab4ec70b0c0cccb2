package record

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Source is the ledger object that a record was read from.
type Source struct {
	// Key of the object, relative to the ledger.
	Key string
	// SHA256 of the object's bytes, in hex.
	SHA256 string
}

// SHA256 returns the sha256 of an object's bytes, in hex.
func SHA256(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Shorten returns the first most characters of a text.
func Shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Quote returns the first most characters of a text in quotation marks, in one line. Control characters, quotation marks and invalid UTF-8
// are escaped.
func Quote(text string, most int) string {
	return strconv.QuoteToGraphic(Shorten(strings.TrimSpace(text), most))
}

// Truncate returns a text as the API server stores one with a limit in bytes: valid UTF-8, cut at a character.
func Truncate(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}

// Problem is an invalid object in the ledger. It is counted and reported, and never stops the analysis.
type Problem struct {
	Source
	// Reason states the finding and the expected content.
	Reason string
}

// Evidence has all records of a ledger except the experiment. Every slice is in the order of the keys.
type Evidence struct {
	// Waves are the plans. A ledger written by hand may have none; then the attempts are not checked against plans.
	Waves    []Wave
	Attempts []Attempt
	// Leases are the leases under which the blocks ran.
	Leases   Leases
	Problems []Problem
	// Unfinished are the trials that were started and have no attempt of that execution.
	Unfinished []Started
	// Sealed are the sha256 sums of attempt objects by key, as recorded by an earlier analysis.
	Sealed map[string]string
}
