package ledger

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"regexp"
	"slices"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

var sealKey = regexp.MustCompile(`^analysis/(` + record.WaveForm + `)/evidence\.sha256$`)

// SealKey returns the key of the list of attempt objects that the analysis of a wave read, in the format of sha256sum, so that sha256sum
// --check reads it.
func SealKey(wave int) string { return AnalysisPrefix(wave) + "evidence.sha256" }

// ReadSeals returns the sha256 sums of attempts that earlier analyses recorded, for the waves up to and including through; a negative
// through means all of them. Of several records of an object the first one counts. Of a ledger with accepted objects only, the accepted
// list alone counts, and none if a client replaced it: the outcomes of a computed analysis are compared with those that were accepted.
func ReadSeals(ctx context.Context, s store.Store, through int) (map[string]string, []record.Problem, error) {
	keys, err := s.List(ctx, "analysis/")
	if err != nil {
		return nil, nil, err
	}
	keys = matching(upToWave(keys, sealKey, through), sealKey)
	if checked, ok := s.(interface{ sealed() (int, bool) }); ok {
		if wave, known := checked.sealed(); known && (through < 0 || wave <= through) {
			keys = slices.DeleteFunc(keys, func(key string) bool { return key != SealKey(wave) })
			if len(keys) > 0 {
				if _, err := s.Get(ctx, keys[0]); errors.Is(err, ErrReplaced) {
					return nil, nil, nil
				}
			}
		}
	}
	type list = map[string]string
	read, problems, err := readAll(ctx, s, keys, func(_ string, raw []byte) (*list, error) {
		sums := list{}
		return &sums, eachSealed(raw, func(sum, key []byte) { sums[string(key)] = string(sum) })
	})
	if err != nil || len(read) == 0 {
		return nil, problems, err
	}
	out := list{}
	for _, sums := range slices.Backward(read) {
		maps.Copy(out, sums)
	}
	return out, problems, nil
}

// mostSeal bounds the list of an analysis in a shared process: 100,000 attempts have lines of about 190 bytes, or 250 with a long run name.
const mostSeal = 32 << 20

// mostUnread bounds the count of unread attempts, and the number of other objects beside them. Pods that measure may write any number of
// names, and every reconcile of a stopped wave lists them.
const mostUnread = 10_000

// CountUnread returns the number of attempts of a wave that its analysis has not read. Above mostUnread it is a lower bound. If s has
// accepted objects only and the list of the analysis was replaced, all attempts count as unread: another list could hide some.
func CountUnread(ctx context.Context, s store.Store, wave int) (int, error) {
	seed, read := maphash.MakeSeed(), map[uint64]struct{}{}
	err := useLarge(ctx, s, SealKey(wave), mostSeal, func(raw []byte) error {
		// If the list is invalid, all attempts count as unread.
		if err := eachSealed(raw, func(_, key []byte) { read[maphash.Bytes(seed, key)] = struct{}{} }); err != nil {
			clear(read)
		}
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, ErrReplaced) {
		return 0, err
	}
	count, others := 0, 0
	err = store.EachPage(ctx, s, WaveAttemptsPrefix(wave), "", func(keys []string) error {
		for _, key := range keys {
			if _, known := read[maphash.String(seed, key)]; known {
				continue
			}
			if attemptKey.MatchString(key) && store.CheckKey(key) == nil {
				count++
			} else {
				others++
			}
		}
		switch {
		case count >= mostUnread:
			return fs.SkipAll
		case others > mostUnread:
			return fmt.Errorf("the list of %s in %s is %w: beside attempts it has more than %d objects; find out who wrote them and remove them",
				WaveAttemptsPrefix(wave), s.URL(), store.ErrTooLarge, mostUnread)
		}
		return nil
	})
	return count, err
}

// eachSealed visits the lines of a list: a sum in hex, two spaces and a key. It returns an error for the first invalid line.
func eachSealed(raw []byte, visit func(sum, key []byte)) error {
	i := 0
	// The lines are not split in advance, because an untrusted list may consist of line ends only.
	for line := range bytes.Lines(raw) {
		i++
		sum, key, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("  "))
		var decoded [32]byte
		if ok = ok && len(sum) == hex.EncodedLen(len(decoded)); ok {
			_, err := hex.Decode(decoded[:], sum)
			ok = err == nil && bytes.HasPrefix(key, []byte(AttemptsPrefix))
		}
		if !ok {
			return fmt.Errorf("line %d is not the sha256sum of an attempt: the analyzed attempts "+
				"cannot be compared with the present ones", i)
		}
		visit(sum, key)
	}
	return nil
}
