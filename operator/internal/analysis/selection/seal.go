package selection

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// checksums are the sha256 sums of objects by key.
type checksums map[string]string

// checksumsOf returns the sums of the attempt objects, including those that cannot be read.
func checksumsOf(attempts []*record.Attempt, problems []record.Problem) checksums {
	out := checksums{}
	for _, attempt := range attempts {
		source := sourceOf(attempt)
		out[source.Key] = source.SHA256
	}
	for _, problem := range problems {
		// An object that is too large to be read has no sum.
		if strings.HasPrefix(problem.Key, "attempts/") && problem.SHA256 != "" {
			out[problem.Key] = problem.SHA256
		}
	}
	return out
}

// sourceOf returns the object that an attempt was read from. For an attempt that was read from no ledger it is the object that a ledger
// would have.
func sourceOf(attempt *record.Attempt) record.Source {
	if attempt.Source.Key != "" {
		return attempt.Source
	}
	raw, err := json.Marshal(attempt)
	if err != nil {
		raw = []byte(attempt.ID)
	}
	return record.Source{Key: path.Join("attempts", attempt.Block, attempt.ID) + ".json", SHA256: record.SHA256(raw)}
}

// write prints the sums in the format of sha256sum, sorted by key, so that standard tools can check them.
func (c checksums) write(to io.Writer) {
	for _, key := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(to, "%s  %s\n", c[key], key)
	}
}

// digest is the sha256 of the output of write.
func (c checksums) digest() string {
	sum := sha256.New()
	c.write(sum)
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// with returns the union of two sets of sums.
func (c checksums) with(more checksums) checksums {
	if len(more) == 0 {
		return c
	}
	out := maps.Clone(c)
	maps.Copy(out, more)
	return out
}

// Seal lists the attempts up to a wave in the format of sha256sum. Entries of an earlier seal stay unchanged, or a second analysis would
// hide a change between the two.
func Seal(evidence record.Evidence, wave int) []byte {
	var out bytes.Buffer
	checksumsOf(sortedAttempts(evidence.Attempts, wave), evidence.Problems).with(evidence.Sealed).write(&out)
	return out.Bytes()
}

// alteredObjects returns the keys of the sealed objects that are missing or have another sum, sorted. If a block was executed more than
// once, removing one execution chooses which of the others counts. So nothing is decided then, even if every trial still has an attempt.
func alteredObjects(sealed map[string]string, sums checksums) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(sealed)) {
		if sums[key] != sealed[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// findMissingObjects excludes the sealed objects that are missing.
func findMissingObjects(sealed map[string]string, sums checksums) (out []Exclusion) {
	for _, key := range slices.Sorted(maps.Keys(sealed)) {
		if _, ok := sums[key]; !ok {
			out = append(out, exclude(key, altered, "it was there when the run was analysed before, with sha256 %s, and is gone", sealed[key]))
		}
	}
	return out
}

// rejectAltered rejects the attempts whose objects changed since an earlier analysis: an attempt is written once, so that a later change
// is no measurement.
func rejectAltered(sealed map[string]string, attempts []*record.Attempt) ruling {
	if len(sealed) == 0 {
		return ruling{admitted: attempts}
	}
	return rule(attempts, altered, func(attempt *record.Attempt) string {
		source := sourceOf(attempt)
		if before, ok := sealed[source.Key]; ok && before != source.SHA256 {
			return fmt.Sprintf("its object had sha256 %s when the run was analysed before and has %s now", before, source.SHA256)
		}
		return ""
	})
}
