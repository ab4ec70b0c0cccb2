package record

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The formats of the names of waves, blocks and trials, which are defined in Go only here. A number has at least the digits that its format
// has, and no more leading zeros, so that every object has exactly one name. So names do not sort as their numbers do.

// Formats of the names, as parts of regular expressions without groups.
const (
	WaveForm  = `(?:[0-9]{3}|[1-9][0-9]{3,})`
	BlockForm = `w` + WaveForm + `-b(?:[0-9]{4}|[1-9][0-9]{4,})`
	TrialForm = BlockForm + `-[sw](?:[0-9]{5}|[1-9][0-9]{5,})`
)

// WaveName returns the number of a wave as names and keys contain it.
func WaveName(wave int) string { return fmt.Sprintf("%03d", wave) }

// WaveKey returns the key of the plan of a wave in its ledger.
func WaveKey(wave int) string { return "waves/" + WaveName(wave) + "/wave.json" }

// WavePrefix returns the common prefix of the names of a wave's blocks, which no other wave's have.
func WavePrefix(wave int) string { return "w" + WaveName(wave) + "-" }

// BlockName returns the name of a block. Blocks are numbered through all waves.
func BlockName(wave, number int) string { return fmt.Sprintf("%sb%04d", WavePrefix(wave), number) }

// TrialName returns the name of a block's trial at a slot.
func TrialName(block string, slot int, warmup bool) string {
	kind := 's'
	if warmup {
		kind = 'w'
	}
	return fmt.Sprintf("%s-%c%05d", block, kind, slot)
}

// IsWarmup reports whether the name is that of a warm-up.
func IsWarmup(trial string) bool {
	at := strings.LastIndexByte(trial, '-')
	return at >= 0 && strings.HasPrefix(trial[at+1:], "w")
}

var blockForm = regexp.MustCompile(`^w(` + WaveForm + `)-b`)

// WaveOf returns the wave of the name of a block or a trial; ok is false for other names.
func WaveOf(name string) (wave int, ok bool) {
	match := blockForm.FindStringSubmatch(name)
	if match == nil {
		return 0, false
	}
	wave, err := strconv.Atoi(match[1])
	return wave, err == nil
}

// BlockNumber returns the number of a block; ok is false for other names.
func BlockNumber(block string) (number int, ok bool) {
	prefix := blockForm.FindString(block)
	if prefix == "" {
		return 0, false
	}
	number, err := strconv.Atoi(strings.TrimPrefix(block, prefix))
	return number, err == nil
}

// CompareNames orders names and keys by their numbers: of two numbers at the same position the one with more digits is larger. Names whose
// numbers have the minimal digits are in the order of their texts.
func CompareNames(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	// Numbers with a common prefix may differ in length only.
	for i > 0 && digit(a[i-1]) {
		i--
	}
	return cmp.Or(cmp.Compare(digits(a[i:]), digits(b[i:])), cmp.Compare(a[i:], b[i:]))
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func digits(text string) (count int) {
	for count < len(text) && digit(text[count]) {
		count++
	}
	return count
}
