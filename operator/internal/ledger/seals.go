package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

var sealKey = regexp.MustCompile(`^analysis/(` + record.WaveForm + `)/evidence\.sha256$`)

// SealKey lists the attempt objects that the analysis of a wave read, as sha256sum prints them: sha256sum --check reads it.
func SealKey(wave int) string { return analysisKey(wave, "evidence.sha256") }

// ReadSeals reads what earlier analyses found the attempts of the waves up to and including through to be; a negative through
// means all of them. Of an object in several lists the first counts.
func ReadSeals(ctx context.Context, store Store, through int) (map[string]string, []record.Problem, error) {
	keys, err := store.List(ctx, "analysis/")
	if err != nil {
		return nil, nil, err
	}
	var lists []string
	for _, key := range keep(keys, sealKey, through) {
		if sealKey.MatchString(key) {
			lists = append(lists, key)
		}
	}
	type list = map[string]string
	read, problems, err := readAll(ctx, store, lists, func(_ string, raw []byte) (*list, string) {
		sums, reason := parseSeal(string(raw))
		if reason != "" {
			return nil, reason
		}
		return &sums, ""
	})
	if err != nil || len(read) == 0 {
		return nil, problems, err
	}
	out := list{}
	for _, sums := range read {
		for key, sum := range sums {
			if _, known := out[key]; !known {
				out[key] = sum
			}
		}
	}
	return out, problems, nil
}

// mostSeal bounds the list of an analysis where many share a process: 100,000 attempts have a line of some 190 bytes each, and of 250 where
// a run has a long name.
const mostSeal = 32 << 20

// CountUnread is how many attempts of a wave its analysis has not read.
func CountUnread(ctx context.Context, store Store, wave int) (int, error) {
	raw, err := GetAtMost(ctx, store, SealKey(wave), mostSeal)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, err
	}
	// Of a list that cannot be read, what it has is not known to have been read.
	read, _ := parseSeal(string(raw))
	count := 0
	err = EachPage(ctx, store, WaveAttemptsPrefix(wave), func(keys []string) error {
		for _, key := range keys {
			if _, known := read[key]; !known && attemptKey.MatchString(key) {
				count++
			}
		}
		return nil
	})
	return count, err
}

// parseSeal reads lines of a sum in hex, two spaces and a key.
func parseSeal(text string) (map[string]string, string) {
	out := map[string]string{}
	i := 0
	// Not split at once: who may write a list may write one of nothing but ends of lines.
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		i++
		if line == "" && text == "" {
			continue // An analysis of no attempt at all.
		}
		sum, key, ok := strings.Cut(line, "  ")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != 32 || !strings.HasPrefix(key, AttemptsPrefix) {
			return nil, fmt.Sprintf("line %d is not the sha256sum of an attempt: what was analysed before "+
				"cannot be compared with what is there now", i)
		}
		out[key] = sum
	}
	return out, ""
}
