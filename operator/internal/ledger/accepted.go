package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// ErrReplaced means that an object of an analysis is not the one that the analysis wrote.
var ErrReplaced = errors.New("it is not the object that the analysis wrote")

// Written identifies the objects of an analysis. The pod of the analysis reports it as its termination message, which clients with a key of
// the ledger cannot write.
type Written struct {
	Wave int `json:"wave"`
	// Analysis and Report are the sha256 sums of analysis.json and report.html in hex.
	Analysis string `json:"analysis"`
	Report   string `json:"report"`
	// Evidence is the sum of evidence.sha256; empty for an analysis of an earlier release, whose list is read unchecked.
	Evidence string `json:"evidence,omitempty"`
}

// Text returns the form that ParseWritten reads.
func (w Written) Text() string {
	raw, err := json.Marshal(w)
	if err != nil {
		panic(err) // Numbers and texts.
	}
	return string(raw)
}

// ParseWritten reads the termination message of an analysis; ok is false for any other text.
func ParseWritten(text string) (out Written, ok bool) {
	err := json.Unmarshal([]byte(text), &out)
	return out, err == nil && sum.MatchString(out.Analysis) && sum.MatchString(out.Report) && out.Wave >= 0 &&
		(out.Evidence == "" || sum.MatchString(out.Evidence))
}

var (
	sum        = regexp.MustCompile(`^[0-9a-f]{64}$`)
	derivedKey = regexp.MustCompile(`^analysis/(` + record.WaveForm + `)/.+$`)
)

// Again computes the objects of the analysis of a wave from the attempts in a ledger, by key. cause is why the stored ones are not used:
// ErrReplaced, or nil if nothing is known of them.
type Again func(ctx context.Context, s store.Store, wave int, cause error) (map[string][]byte, error)

// Accepted returns a ledger with the objects of the accepted analysis, also if clients with a key of the ledger have replaced them. Any
// other object of an analysis is computed by again from the attempts. If again is nil, such an object is ErrReplaced if it was accepted
// with another content, and ErrNotFound otherwise. A wave after the accepted one has no analysis yet, unless accepted is nil, which means
// that nothing is known.
func Accepted(s store.Store, accepted *Written, again Again) store.Store {
	out := &onlyAccepted{Store: s, accepted: accepted, again: again, computed: map[int]map[string][]byte{}}
	if versioned, ok := s.(store.Versioned); ok {
		return struct {
			*onlyAccepted
			store.Versioned
		}{out, versioned}
	}
	return out
}

type onlyAccepted struct {
	store.Store
	accepted *Written
	again    Again

	mutex    sync.Mutex
	computed map[int]map[string][]byte
}

func (o *onlyAccepted) Get(ctx context.Context, key string) ([]byte, error) {
	wave, derived := waveOf(derivedKey, key)
	if !strings.HasPrefix(key, "analysis/") || sealKey.MatchString(key) && !o.knowsSeal(wave) {
		return o.Store.Get(ctx, key)
	}
	if !derived {
		return nil, fmt.Errorf("%s: it is of no wave: %w", key, store.ErrNotFound)
	}
	if o.accepted != nil && wave > o.accepted.Wave {
		return nil, fmt.Errorf("%s: the operator has not accepted it: %w", key, store.ErrNotFound)
	}
	raw, err := o.Store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	var cause error
	if o.accepted != nil && wave == o.accepted.Wave {
		want := map[string]string{
			AnalysisKey(wave): o.accepted.Analysis, HTMLKey(wave): o.accepted.Report, SealKey(wave): o.accepted.Evidence,
		}[key]
		if want != "" && record.SHA256(raw) == want {
			return raw, nil
		}
		if want != "" {
			cause = fmt.Errorf("%s in %s: %w", key, o.URL(), ErrReplaced)
		}
	}
	switch {
	case o.again != nil:
		return o.compute(ctx, wave, key, cause)
	case cause != nil:
		return nil, cause
	default:
		return nil, fmt.Errorf("%s: the operator has not accepted it: %w", key, store.ErrNotFound)
	}
}

// knowsSeal reports whether the sum of the list of a wave's attempts was accepted.
func (o *onlyAccepted) knowsSeal(wave int) bool {
	sealed, ok := o.sealed()
	return ok && wave == sealed
}

// sealed returns the wave of which the list of attempts was accepted. The list has those of earlier waves too.
func (o *onlyAccepted) sealed() (wave int, ok bool) {
	if o.accepted == nil || o.accepted.Evidence == "" {
		return 0, false
	}
	return o.accepted.Wave, true
}

// compute returns an object of the analysis of a wave, which is computed once.
func (o *onlyAccepted) compute(ctx context.Context, wave int, key string, cause error) ([]byte, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.computed[wave] == nil {
		objects, err := o.again(ctx, Accepted(o.Store, o.accepted, nil), wave, cause)
		if err != nil {
			return nil, err
		}
		o.computed[wave] = objects
	}
	raw, ok := o.computed[wave][key]
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, store.ErrNotFound)
	}
	return raw, nil
}
