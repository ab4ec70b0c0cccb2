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

// Sharing reads attempts that share what is the same in all of them: a hundred thousand copies of one fingerprint would take more
// memory than everything measured, and more time to make. It may be used by several goroutines at once.
type Sharing struct {
	mutex   sync.Mutex
	texts   map[string]string
	options json.Options
	// tails is how many bytes of output the attempts had so far.
	tails int
}

// mostTails bounds what is kept of what processes wrote, which no verdict rests on. Each of a hundred thousand trials may have written as
// much as is kept of one, and no two the same.
const mostTails = 4 << 20

// NewSharing returns one that has read nothing yet.
func NewSharing() *Sharing {
	s := &Sharing{texts: map[string]string{}}
	s.options = json.JoinOptions(strict, json.WithUnmarshalers(json.JoinUnmarshalers(
		sharing(s, withoutReadings), sharing[map[string]string](s, nil), sharing[[]string](s, nil), wholeNumber,
	)))
	return s
}

// An attempt begins in these years. JSON has none beyond 9999, and the longest one takes three centuries: of one that ends later nothing
// could be written down, and with it nothing of its run.
const firstYear, lastYear = 1, 9000

// ParseAttempt reads one attempt. The error names the field that is wrong.
func (s *Sharing) ParseAttempt(raw []byte) (*Attempt, error) {
	attempt, err := parse[Attempt]("attempt", raw, s.options)
	if err != nil {
		return nil, err
	}
	if year := attempt.StartedAt.UTC().Year(); year < firstYear || year > lastYear {
		return nil, fmt.Errorf("invalid startedAt: allowed are the years from %d to %d", firstYear, lastYear)
	}
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

// tails are the ends of what the attempt's processes wrote.
func (a *Attempt) tails() []*string {
	out := []*string{&a.StderrTail}
	for i := range a.Roles {
		out = append(out, &a.Roles[i].OutputTail)
	}
	return out
}

// repeated are the texts that many attempts have in common.
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

// mostRemembered bounds what is remembered of one type, in case nothing is ever the same.
const mostRemembered = 10_000

// sharing decodes what was decoded before, from the same bytes or after simplify from others, to the same value.
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

// readings of the machine stand in the fingerprint of a trial for people to read. They differ from trial to trial, so that no two
// attempts could share the rest.
var readings = []string{"layoutPadBytes", "loadAverage1", "memoryAvailableBytes", "swapUsedBytes", "uptimeSeconds"}

// withoutReadings reports whether there were any.
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

// zeros are what all readings of nothing point to: most of what a quiet machine reads.
var (
	zeroReading float64
	zeroCount   int64
)

// shareZeros lets the pointers in a struct, and in those inside it, share their zeros.
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
