package ledger

import (
	"bytes"
	"context"
	"maps"
	"sync"
	"testing"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// struck is a store with versions in which another client overwrites an object before one of the requests.
type struck struct {
	store.Store
	mutex    sync.Mutex
	requests int
	at       int
	key      string
	data     []byte
	// first is the previous content; nil before the overwrite.
	first []byte
}

func (s *struck) came() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.requests++; s.requests != s.at {
		return
	}
	ctx := context.Background()
	first, err := s.Store.Get(ctx, s.key)
	if err == nil {
		err = s.Store.Replace(ctx, s.key, s.data)
	}
	if err != nil {
		panic(err)
	}
	s.first = first
}

func (s *struck) List(ctx context.Context, prefix string) ([]string, error) {
	s.came()
	return s.Store.List(ctx, prefix)
}

func (s *struck) Get(ctx context.Context, key string) ([]byte, error) {
	s.came()
	return s.Store.Get(ctx, key)
}

func (s *struck) Firsts(context.Context, string) (map[string]string, error) {
	s.came()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.first == nil {
		return nil, nil
	}
	return map[string]string{s.key: "1"}, nil
}

func (s *struck) GetVersion(_ context.Context, key, version string) ([]byte, error) {
	s.came()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if key != s.key || version != "1" || s.first == nil {
		return nil, store.ErrNotFound
	}
	return s.first, nil
}

// Pods that write attempts can observe the start of an analysis and overwrite objects during it.
func TestReadEvidence_FirstVersionCountsForAnyTimeOfOverwrite(t *testing.T) {
	const key = "attempts/w000-b0001/pod-w000-b0001/w000-b0001-s00002.json"
	done := false
	for at := 1; !done; at++ {
		for what, change := range map[string]func([]byte) []byte{
			"with another figure": func(raw []byte) []byte {
				return bytes.Replace(raw, []byte(`"durationSeconds":`), []byte(`"durationSeconds":1`), 1)
			},
			"with nothing": func([]byte) []byte { return nil },
		} {
			s := &struck{Store: inFolder(t, nil), at: at, key: key}
			want := fill(t, s.Store)
			if s.data = change(want.objects[key]); bytes.Equal(s.data, want.objects[key]) {
				t.Fatal("it is overwritten with the same content")
			}
			attempts, problems, err := ReadAttempts(t.Context(), s, 0)
			if err != nil {
				t.Fatal(err)
			}
			done = s.first == nil
			if wrote := len(problems) == 1 && problems[0].Key == key+" (written over)"; len(problems) > 1 || len(problems) == 1 && !wrote {
				t.Errorf("before request %d, %s: problems %+v", at, what, problems)
			}
			if len(attempts) != 24 {
				t.Errorf("before request %d, %s: %d attempts", at, what, len(attempts))
			}
			last := ""
			for i := range attempts {
				source := attempts[i].Source
				if source.SHA256 != record.SHA256(want.objects[source.Key]) {
					t.Errorf("before request %d, %s: %s is not the first version", at, what, source.Key)
				}
				if source.Key <= last {
					t.Errorf("before request %d, %s: %s comes after %s", at, what, source.Key, last)
				}
				last = source.Key
			}
		}
	}
}

func TestExports_ContainFirstVersionsOnly(t *testing.T) {
	one, two := AttemptKey("w000-b0001", "pod", "w000-b0001-s00001"), AttemptKey("w000-b0001", "pod", "w000-b0001-s00002")
	objects := map[string]string{ExperimentKey: "{}", one: "1", two: "2"}
	for name, give := range map[string]func(store.Store) (map[string]string, error){
		"an archive": func(s store.Store) (map[string]string, error) {
			var out bytes.Buffer
			if err := WriteArchive(t.Context(), s, &out); err != nil {
				return nil, err
			}
			return contents(t, openBytes(t, out.Bytes())), nil
		},
		"attempts": func(s store.Store) (map[string]string, error) {
			out := map[string]string{ExperimentKey: "{}"}
			return out, EachAttempt(t.Context(), s, func(key string, raw []byte) error { out[key] = string(raw); return nil })
		},
	} {
		for _, key := range []string{one, two} {
			given := 0
			for at := range 12 {
				s := &struck{Store: inFolder(t, objects), at: at, key: key, data: []byte("forged")}
				got, err := give(s)
				if err != nil {
					continue // The error reports the overwrite.
				}
				if given++; !maps.Equal(got, objects) {
					t.Errorf("%s: %s is overwritten before request %d, and the export has %v", name, key, at, got)
				}
			}
			if given == 0 {
				t.Errorf("%s is never exported", name)
			}
		}
	}
}
