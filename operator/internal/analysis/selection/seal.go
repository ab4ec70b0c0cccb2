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

// checksums are the sha256 of attempt objects by key.
type checksums map[string]string

func sums(attempts []*record.Attempt, problems []record.Problem) checksums {
	out := checksums{}
	for _, attempt := range attempts {
		source := sourceOf(attempt)
		out[source.Key] = source.SHA256
	}
	for _, problem := range problems {
		// An object too large to be read has no sum.
		if strings.HasPrefix(problem.Key, "attempts/") && problem.SHA256 != "" {
			out[problem.Key] = problem.SHA256
		}
	}
	return out
}

// sourceOf is where an attempt was read. Of one that comes from no ledger, what would have been written stands in.
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

// write prints what sha256sum does for the objects, sorted by key, so that anyone can check them with standard tools.
func (c checksums) write(to io.Writer) {
	for _, key := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(to, "%s  %s\n", c[key], key)
	}
}

// digest is the sha256 of what write prints.
func (c checksums) digest() string {
	sum := sha256.New()
	c.write(sum)
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// Seal lists the attempts up to a wave as sha256sum does. What an earlier analysis found stays as it was then, or analysing
// twice would hide that something was changed in between.
func Seal(evidence record.Evidence, wave int) []byte {
	found := sums(upTo(evidence.Attempts, wave), evidence.Problems)
	maps.Copy(found, evidence.Sealed)
	var out bytes.Buffer
	found.write(&out)
	return out.Bytes()
}

// rejectAltered drops the attempts whose objects are not what an earlier analysis read, and names those that are gone. An
// attempt is written once; whatever changes it later does not measure anything. Of a block that was executed more than once, whoever
// takes away one execution chooses which counts, so that nothing is decided then, also where every trial still has an attempt.
func (s *Selection) rejectAltered(sealed map[string]string, found checksums, attempts []*record.Attempt) []*record.Attempt {
	if len(sealed) == 0 {
		return attempts
	}
	for _, key := range slices.Sorted(maps.Keys(sealed)) {
		sum, there := found[key]
		if sum != sealed[key] {
			s.Altered = append(s.Altered, key)
		}
		if !there {
			s.reject(key, altered, "it was there when the run was analysed before, with sha256 %s, and is gone", sealed[key])
			s.gone = append(s.gone, key)
		}
	}
	return s.keep(attempts, altered, func(attempt *record.Attempt) string {
		source := sourceOf(attempt)
		if before, ok := sealed[source.Key]; ok && before != source.SHA256 {
			return fmt.Sprintf("its object had sha256 %s when the run was analysed before and has %s now", before, source.SHA256)
		}
		return ""
	})
}
