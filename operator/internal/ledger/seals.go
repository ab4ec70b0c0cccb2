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

// SealKey lists the attempt objects that the analysis of a wave read, as sha256sum prints them: sha256sum --check reads it.
func SealKey(wave int) string { return AnalysisPrefix(wave) + "evidence.sha256" }

// ReadSeals reads what earlier analyses found the attempts of the waves up to and including through to be; a negative through
// means all of them. Of an object in several lists the first counts.
func ReadSeals(ctx context.Context, store store.Store, through int) (map[string]string, []record.Problem, error) {
	keys, err := store.List(ctx, "analysis/")
	if err != nil {
		return nil, nil, err
	}
	type list = map[string]string
	read, problems, err := readAll(ctx, store, matching(keep(keys, sealKey, through), sealKey), func(_ string, raw []byte) (*list, error) {
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

// mostSeal bounds the list of an analysis where many share a process: 100,000 attempts have a line of some 190 bytes each, and of 250 where
// a run has a long name.
const mostSeal = 32 << 20

// Whoever may write attempts may write any number of names, and every pass over a stopped wave lists them: further than mostUnread no
// attempts are counted, and beside them are at most as many others.
const mostUnread = 10_000

// CountUnread is how many attempts of a wave its analysis has not read, where they are at most mostUnread; of more it is at least that.
func CountUnread(ctx context.Context, s store.Store, wave int) (int, error) {
	seed, read := maphash.MakeSeed(), map[uint64]struct{}{}
	err := useLarge(ctx, s, SealKey(wave), mostSeal, func(raw []byte) error {
		// Of a list that cannot be read, what it has is not known to have been read.
		if err := eachSealed(raw, func(_, key []byte) { read[maphash.Bytes(seed, key)] = struct{}{} }); err != nil {
			clear(read)
		}
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
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

// eachSealed reads lines of a sum in hex, two spaces and a key, and says what is wrong with the first that is none.
func eachSealed(raw []byte, visit func(sum, key []byte)) error {
	i := 0
	// Not split at once: who may write a list may write one of nothing but ends of lines.
	for line := range bytes.Lines(raw) {
		i++
		sum, key, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("  "))
		var decoded [32]byte
		if ok = ok && len(sum) == hex.EncodedLen(len(decoded)); ok {
			_, err := hex.Decode(decoded[:], sum)
			ok = err == nil && bytes.HasPrefix(key, []byte(AttemptsPrefix))
		}
		if !ok {
			return fmt.Errorf("line %d is not the sha256sum of an attempt: what was analysed before "+
				"cannot be compared with what is there now", i)
		}
		visit(sum, key)
	}
	return nil
}
