package record

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Sharing parses attempts that share equal parts in memory. A hundred thousand copies of one fingerprint would take more memory than all
// measurements, and more time to decode. It is safe for concurrent use.
type Sharing struct {
	mutex   sync.Mutex
	texts   map[string]string
	options json.Options
	// tails is the number of bytes of output in the attempts so far.
	tails int
}

// mostTails bounds the retained output of processes, which no verdict uses. Each of a hundred thousand trials may have its own maximal
// output.
const mostTails = 4 << 20

// NewSharing returns an empty Sharing.
func NewSharing() *Sharing {
	s := &Sharing{texts: map[string]string{}}
	s.options = json.JoinOptions(strict, json.WithUnmarshalers(json.JoinUnmarshalers(
		sharing(s, withoutReadings), sharing[map[string]string](s, nil), sharing[[]string](s, nil),
		sharing[*Kernel](s, nil), wholeNumber,
	)))
	return s
}

// The allowed years of an attempt's start. JSON times end at year 9999 and the longest duration is three centuries; an end after 9999 could
// not be encoded, and would break the analysis of its run.
const firstYear, lastYear = 1, 9000

// ParseAttempt parses one attempt. The error names the invalid field.
func (s *Sharing) ParseAttempt(raw []byte) (*Attempt, error) {
	attempt, err := parse[Attempt]("attempt", raw, s.options)
	if err != nil {
		return nil, err
	}
	if year := attempt.StartedAt.UTC().Year(); year < firstYear || year > lastYear {
		return nil, fmt.Errorf("invalid startedAt: allowed are the years from %d to %d", firstYear, lastYear)
	}
	attempt.applyKernel()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, tail := range attempt.tails() {
		if s.tails += len(*tail); s.tails > mostTails {
			*tail = ""
		}
	}
	for _, text := range attempt.repeated() {
		*text = s.text(*text)
	}
	shareZeros(reflect.ValueOf(&attempt.Noise).Elem())
	shareZeros(reflect.ValueOf(&attempt.Resources).Elem())
	return attempt, nil
}

// tails returns the output of the attempt's processes.
func (a *Attempt) tails() []*string {
	out := []*string{&a.StderrTail}
	for i := range a.Roles {
		out = append(out, &a.Roles[i].OutputTail)
	}
	return out
}

// repeated returns the strings that many attempts have in common.
func (a *Attempt) repeated() []*string {
	out := []*string{
		&a.Schema, &a.Run.Namespace, &a.Run.Name, &a.Run.UID, &a.Experiment, &a.Block, &a.Point, &a.Arm, &a.Build,
		&a.Isolation.CPUsAllowed, &a.Isolation.Reason, &a.Isolation.Level, &a.StderrTail,
	}
	if a.Result == nil {
		return out
	}
	for p := range a.Result.Phases {
		out = append(out, &a.Result.Phases[p].Name)
	}
	for c := range a.Result.Ceilings {
		out = append(out, &a.Result.Ceilings[c].Name, &a.Result.Ceilings[c].Unit, &a.Result.Ceilings[c].Instructions)
	}
	if parity := a.Result.Parity; parity != nil {
		out = append(out, &parity.Algorithm, &parity.Digest)
	}
	return out
}

// mostRemembered bounds the cache of one type, in case no two values are equal.
const mostRemembered = 10_000

// sharing caches decoded values by their bytes. After simplify, equal values share one copy too.
func sharing[T any](s *Sharing, simplify func(*T) bool) *json.Unmarshalers {
	remembered := map[string]T{}
	recall := func(key []byte) (T, bool) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		value, ok := remembered[string(key)]
		return value, ok
	}
	return json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, into *T) error {
		raw, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		key := []byte(raw)
		if shared, ok := recall(key); ok {
			*into = shared
			return nil
		}
		var value T
		if err := json.Unmarshal(raw, &value, strict); err != nil {
			return err
		}
		if simplify != nil && simplify(&value) {
			if key, err = stdjson.Marshal(value); err != nil {
				return err
			}
			if shared, ok := recall(key); ok {
				*into = shared
				return nil
			}
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if len(remembered) < mostRemembered {
			remembered[string(key)] = value
		}
		*into = value
		return nil
	})
}

// readings are fields of the fingerprint for human readers. They differ from trial to trial, which would prevent sharing of the rest.
var readings = []string{"layoutPadBytes", "loadAverage1", "memoryAvailableBytes", "swapUsedBytes", "uptimeSeconds"}

// withoutReadings removes the readings and reports whether there were any.
func withoutReadings(fingerprint *map[string]any) bool {
	before := len(*fingerprint)
	for _, key := range readings {
		delete(*fingerprint, key)
	}
	return len(*fingerprint) < before
}

func (s *Sharing) text(text string) string {
	if shared, ok := s.texts[text]; ok {
		return shared
	}
	// A clone, because the text may be a slice of the whole object's bytes.
	text = strings.Clone(text)
	s.texts[text] = text
	return text
}

// zeros are the shared targets of pointers to zero, the most frequent reading of a quiet machine.
var (
	zeroReading float64
	zeroCount   int64
)

// shareZeros lets the pointers in a struct, and in nested structs, share their zeros.
func shareZeros(readings reflect.Value) {
	for i := range readings.NumField() {
		field := readings.Field(i)
		switch pointer := field.Interface().(type) {
		case *float64:
			if pointer != nil && *pointer == 0 {
				field.Set(reflect.ValueOf(&zeroReading))
			}
		case *int64:
			if pointer != nil && *pointer == 0 {
				field.Set(reflect.ValueOf(&zeroCount))
			}
		default:
			if field.Kind() == reflect.Struct {
				shareZeros(field)
			}
		}
	}
}
