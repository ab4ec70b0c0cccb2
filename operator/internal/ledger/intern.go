package ledger

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"assay.dev/assay/operator/internal/record"
)

// interner lets attempts share what is the same in all of them. Ten thousand copies of one fingerprint would take more
// memory than everything measured.
type interner struct {
	mutex  sync.Mutex
	maps   map[string]map[string]any
	values map[string]map[string]string
	argvs  map[string][]string
	texts  map[string]string
}

func newInterner() *interner {
	return &interner{
		maps: map[string]map[string]any{}, values: map[string]map[string]string{},
		argvs: map[string][]string{}, texts: map[string]string{},
	}
}

func (i *interner) intern(attempt *record.Attempt) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	attempt.Environment.Hard = share(i.maps, attempt.Environment.Hard)
	// It differs from trial to trial, so that no two attempts could share the rest, and nothing is ever asked of it.
	delete(attempt.Environment.Soft, "layoutPadBytes")
	attempt.Environment.Soft = share(i.maps, attempt.Environment.Soft)
	attempt.Parameters = share(i.values, attempt.Parameters)
	attempt.Argv = share(i.argvs, attempt.Argv)
	for _, text := range []*string{
		&attempt.Schema, &attempt.Run.Namespace, &attempt.Run.Name, &attempt.Run.UID, &attempt.Experiment, &attempt.Block,
		&attempt.Point, &attempt.Arm, &attempt.Build, &attempt.Isolation.CPUsAllowed, &attempt.Isolation.Reason, &attempt.Isolation.Level, &attempt.StderrTail,
	} {
		*text = i.text(*text)
	}
	shareZeros(reflect.ValueOf(&attempt.Noise).Elem())
	shareZeros(reflect.ValueOf(&attempt.Resources).Elem())
	if attempt.Result == nil {
		return
	}
	for name, metric := range attempt.Result.Metrics {
		metric.Unit = i.text(metric.Unit)
		attempt.Result.Metrics[name] = metric
	}
	attempt.Result.Effective = share(i.maps, attempt.Result.Effective)
	attempt.Result.Workload.Build = share(i.values, attempt.Result.Workload.Build)
	for p := range attempt.Result.Phases {
		attempt.Result.Phases[p].Name = i.text(attempt.Result.Phases[p].Name)
	}
	for c := range attempt.Result.Ceilings {
		ceiling := &attempt.Result.Ceilings[c]
		ceiling.Name, ceiling.Unit = i.text(ceiling.Name), i.text(ceiling.Unit)
	}
	if parity := attempt.Result.Parity; parity != nil {
		parity.Algorithm, parity.Digest = i.text(parity.Algorithm), i.text(parity.Digest)
	}
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

func (i *interner) text(text string) string {
	if shared, ok := i.texts[text]; ok {
		return shared
	}
	// A clone, because the text may be a slice of the whole object's bytes.
	text = strings.Clone(text)
	i.texts[text] = text
	return text
}

// share returns an equal value seen before, or remembers this one.
func share[T any](seen map[string]T, value T) T {
	key, err := json.Marshal(value)
	if err != nil {
		return value // Never happens with decoded JSON; sharing is only about memory.
	}
	if shared, ok := seen[string(key)]; ok {
		return shared
	}
	seen[string(key)] = value
	return value
}
