package record

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The form of the names of waves, blocks and trials. Nothing else in this language knows it. A number has as many digits as the name
// asks for and more where it needs more, with no zeros then: each has one name. So texts do not sort as their numbers do.

// Forms of the names, as parts of regular expressions without groups.
const (
	WaveForm  = `(?:[0-9]{3}|[1-9][0-9]{3,})`
	BlockForm = `w` + WaveForm + `-b(?:[0-9]{4}|[1-9][0-9]{4,})`
	TrialForm = BlockForm + `-[sw](?:[0-9]{5}|[1-9][0-9]{5,})`
)

// WaveName is the number of a wave as names and keys have it.
func WaveName(wave int) string { return fmt.Sprintf("%03d", wave) }

// WaveKey is where the plan of a wave is in its ledger.
func WaveKey(wave int) string { return "waves/" + WaveName(wave) + "/wave.json" }

// WavePrefix begins the names of a wave's blocks, and of no other's.
func WavePrefix(wave int) string { return "w" + WaveName(wave) + "-" }

// BlockName is the name of a block, which are numbered through all waves.
func BlockName(wave, number int) string { return fmt.Sprintf("%sb%04d", WavePrefix(wave), number) }

// TrialName is the name of a block's trial at a slot.
func TrialName(block string, slot int, warmup bool) string {
	kind := 's'
	if warmup {
		kind = 'w'
	}
	return fmt.Sprintf("%s-%c%05d", block, kind, slot)
}

var blockForm = regexp.MustCompile(`^w(` + WaveForm + `)-b`)

// WaveOf is the wave of a block or a trial, if the name is one.
func WaveOf(name string) (wave int, ok bool) {
	match := blockForm.FindStringSubmatch(name)
	if match == nil {
		return 0, false
	}
	wave, err := strconv.Atoi(match[1])
	return wave, err == nil
}

// BlockNumber is the number of a block, if the name is one.
func BlockNumber(block string) (number int, ok bool) {
	prefix := blockForm.FindString(block)
	if prefix == "" {
		return 0, false
	}
	number, err := strconv.Atoi(strings.TrimPrefix(block, prefix))
	return number, err == nil
}

// CompareNames orders names and keys by their numbers: of two numbers at the same place that with more digits is the larger one. Names
// whose numbers have the digits that they ask for are in the order of their texts.
func CompareNames(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	// Numbers that begin alike may differ in length only.
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
