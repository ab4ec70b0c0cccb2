package keeper

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

const block = "w000-b0000"

var trials = []string{block + "-w00000", block + "-s00000", block + "-s00001"}

// memory is a ledger in memory that can be made unreachable.
type memory struct {
	store.Store
	mutex   sync.Mutex
	objects map[string][]byte
	// away is the number of operations that fail from now on, with err, or as unreachable if that is nil.
	away int
	err  error
}

func newMemory() *memory {
	return &memory{objects: map[string][]byte{ledger.ExperimentKey: fmt.Appendf(nil, `{"format": %d}`, experiment.Format)}}
}

func (s *memory) URL() string { return "memory:" }

func (s *memory) fails() error {
	if s.away > 0 {
		s.away--
		return cmp.Or(s.err, store.ErrUnreachable)
	}
	return nil
}

func (s *memory) Get(_ context.Context, key string) ([]byte, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if data, ok := s.objects[key]; ok {
		return data, s.fails()
	}
	return nil, store.ErrNotFound
}

func (s *memory) Create(_ context.Context, key string, data []byte) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.fails(); err != nil {
		return err
	}
	if _, there := s.objects[key]; there {
		return store.ErrExists
	}
	s.objects[key] = bytes.Clone(data)
	return nil
}

func (s *memory) List(_ context.Context, prefix string) ([]string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var out []string
	for key := range s.objects {
		if strings.HasPrefix(key, prefix) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out, s.fails()
}

func (s *memory) Page(context.Context, string, string) ([]string, bool, error) {
	return nil, false, errors.New("a keeper lists one block at a time")
}

func (s *memory) attempt(t *testing.T, executor, trial string) map[string]any {
	t.Helper()
	raw, ok := s.objects[ledger.AttemptKey(block, executor, trial)]
	if !ok {
		t.Fatalf("there is no attempt of %s by %s: %v", trial, executor, s.keys())
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *memory) keys() []string {
	keys, _ := s.List(context.Background(), "")
	return keys
}

// runner is the runner's end of a connection.
type runner struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Scanner
	done  chan error
	hello map[string]any
}

func start(t *testing.T, k *Keeper) *runner {
	t.Helper()
	here, there := net.Pipe()
	r := &runner{t: t, conn: here, lines: bufio.NewScanner(here), done: make(chan error, 1)}
	go func() {
		r.done <- k.Serve(context.Background(), there)
		there.Close()
	}()
	r.hello = r.answer()
	return r
}

func (r *runner) answer() map[string]any {
	r.t.Helper()
	out := map[string]any{}
	if r.lines.Scan() {
		if err := json.Unmarshal(r.lines.Bytes(), &out); err != nil {
			r.t.Fatal(err)
		}
	}
	return out
}

func (r *runner) say(line string) map[string]any {
	r.t.Helper()
	if _, err := r.conn.Write([]byte(line + "\n")); err != nil {
		return nil
	}
	return r.answer()
}

// leave closes the connection and waits for the keeper.
func (r *runner) leave() error {
	r.conn.Close()
	return <-r.done
}

func keeperOf(s store.Store, executor string) *Keeper {
	return &Keeper{Store: s, Block: block, Executor: executor, Trials: trials}
}

func attemptOf(executor, trial, more string) string {
	return fmt.Sprintf(`{"id":"%s/%s","trial":"%[2]s","block":"%s","arm":"new","point":"p","startedAt":"2026-01-01T00:00:00Z","outcome":"Succeeded"%s}`, executor, trial, block, more)
}

func (r *runner) started(executor, trial string) map[string]any {
	return r.say(`{"started":` + attemptOf(executor, trial, "") + `}`)
}

func (r *runner) attempt(executor, trial, more string) map[string]any {
	return r.say(`{"attempt":` + attemptOf(executor, trial, more) + `}`)
}

func TestKeeper_AttemptIsWrittenBeforeTheNextTrialStarts(t *testing.T) {
	s := newMemory()
	k := keeperOf(s, "pod_1")
	r := start(t, k)
	if r.hello["keeper"] != Protocol || r.hello["executor"] != "pod_1" {
		t.Fatalf("the keeper's first message is %v", r.hello)
	}
	for _, trial := range trials {
		if got := r.started("pod_1", trial); got["kept"] != trial {
			t.Fatalf("got %v", got)
		}
		if _, there := s.objects[ledger.StartedKey(block, "pod_1", trial)]; !there {
			t.Errorf("the start of %s is not recorded", trial)
		}
		if got := r.attempt("pod_1", trial, `,"x":1`); got["kept"] != trial {
			t.Fatalf("got %v", got)
		}
		if s.attempt(t, "pod_1", trial)["x"] != 1.0 {
			t.Errorf("%s differs from the attempt sent", trial)
		}
	}
	r.say(`{"done":true}`)
	if err := r.leave(); err != nil {
		t.Fatal(err)
	}
	if len(k.Sums) != 3 || len(s.objects) != 7 {
		t.Errorf("%d sums, %d objects", len(k.Sums), len(s.objects))
	}
}

func TestKeeper_UnknownFormatBlocksTheBlock(t *testing.T) {
	for name, content := range map[string]string{"a later one": `{"format": 7}`, "none": `{}`} {
		s := newMemory()
		s.objects[ledger.ExperimentKey] = []byte(content)
		r := start(t, keeperOf(s, "pod_1"))
		if err := r.leave(); err == nil || !strings.Contains(err.Error(), "experiment.json in memory:: invalid format of the ledger: found") ||
			r.hello["refused"] != err.Error() || len(s.objects) != 1 {
			t.Errorf("%s: %v, and the runner was told %v; the store has %v", name, err, r.hello, s.keys())
		}
	}
}

func TestKeeper_RunnerEndsDuringATrialRecordsAFailedAttempt(t *testing.T) {
	kills := int64(3)
	cases := map[string]struct {
		end     func(r *runner)
		message string // Empty: no attempt is written.
	}{
		"all processes are killed":                    {func(*runner) {}, "no process of this machine was killed"},
		"all processes are killed for lack of memory": {func(*runner) { kills++ }, record.KilledForMemory},
		"the pod is terminated":                       {func(r *runner) { r.say(`{"stopped":"SIGTERM"}`) }, ""},
		"a trial terminates the runner":               {func(r *runner) { r.say(`{"failed":"another process of the pod sent it SIGTERM"}`) }, "another process of the pod"},
		"the runner sends an unknown message":         {func(r *runner) { r.say(`{"nonsense":1}`) }, "invalid message"},
		"the runner sends too many bytes":             {func(r *runner) { r.say(strings.Repeat("x", maxFrame+1)) }, "more than"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newMemory()
			k := keeperOf(s, "pod_1")
			k.Kills = func() (int64, bool) { return kills, true }
			r := start(t, k)
			r.started("pod_1", trials[0])
			r.attempt("pod_1", trials[0], "")
			r.started("pod_1", trials[1])
			tc.end(r)
			_ = r.leave()
			if _, there := s.objects[ledger.StartedKey(block, "pod_1", trials[1])]; !there {
				t.Error("the record of the start is missing")
			}
			if tc.message == "" {
				if _, there := s.objects[ledger.AttemptKey(block, "pod_1", trials[1])]; there {
					t.Error("it has an attempt though its outcome is unknown")
				}
				return
			}
			got := s.attempt(t, "pod_1", trials[1])
			if got["outcome"] != "Failed" || got["endedExecution"] != true || !strings.Contains(fmt.Sprint(got["message"]), tc.message) ||
				got["arm"] != "new" {
				t.Errorf("recorded as %v", got)
			}
			raw := s.objects[ledger.AttemptKey(block, "pod_1", trials[1])]
			var attempt record.Attempt
			if err := json.Unmarshal(raw, &attempt); err != nil {
				t.Fatal(err)
			}
			if cause := attempt.KernelCause(); (cause != "") != strings.HasPrefix(tc.message, record.KilledForMemory) {
				t.Errorf("the cause is %q for %s", cause, raw)
			}
		})
	}
}

// sink is a store that records only the sizes of its objects.
type sink struct {
	*memory
	sizes map[string]int
}

func (s sink) Create(_ context.Context, key string, data []byte) error {
	s.sizes[key] = len(data)
	return nil
}

// A keeper has 128 MiB, and a program chooses the size of its report.
func TestKeeper_LargestAttemptIsNotCopied(t *testing.T) {
	s := sink{newMemory(), map[string]int{}}
	k := keeperOf(s, "pod_1")
	k.Lease = &record.Lease{Node: "node-a", Token: 1}
	r := start(t, k)
	r.started("pod_1", trials[0])
	more := record.MostAttempt - len(attemptOf("pod_1", trials[0], `,"x":""`))
	line := []byte(`{"attempt":` + attemptOf("pod_1", trials[0], `,"x":"`+strings.Repeat("x", more)+`"`) + "}\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := r.conn.Write(line); err != nil {
		t.Fatal(err)
	}
	got := r.answer()
	runtime.ReadMemStats(&after)
	if size := s.sizes[ledger.AttemptKey(block, "pod_1", trials[0])]; got["kept"] != trials[0] || size < record.MostAttempt {
		t.Errorf("got %v, and %d bytes are written", got, size)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 5*record.MostAttempt {
		t.Errorf("an attempt of %d MiB allocates %d MiB", record.MostAttempt>>20, took>>20)
	}
	_ = r.leave()
}

// If such a trial were run again, an arm could choose which of its trials count.
func TestKeeper_TrialThatEndedAnExecutionIsNotRunAgain(t *testing.T) {
	s := newMemory()
	first := start(t, keeperOf(s, "pod_1"))
	for _, trial := range trials[:2] {
		first.started("pod_1", trial)
		first.attempt("pod_1", trial, "")
	}
	first.started("pod_1", trials[2])
	if err := first.leave(); err != nil {
		t.Fatal(err)
	}
	stopped := start(t, keeperOf(s, "pod_2"))
	stopped.started("pod_2", trials[0])
	stopped.say(`{"stopped":"SIGTERM"}`)
	if err := stopped.leave(); err != nil {
		t.Fatal(err)
	}
	second := start(t, keeperOf(s, "pod_3"))
	ended, _ := second.hello["ended"].(map[string]any)
	if len(ended) != 1 || !strings.Contains(fmt.Sprint(ended[trials[2]]), "pod_1/"+trials[2]) {
		t.Errorf("the next execution receives %v", second.hello)
	}
	if got := second.attempt("pod_3", trials[2], ""); got["kept"] != trials[2] {
		t.Errorf("the skipped trial cannot be recorded: %v", got)
	}
	_ = second.leave()
}

func TestKeeper_ForeignObjectsAreIgnored(t *testing.T) {
	below := "attempts/" + block + "/"
	for _, key := range []string{
		below, below + "pod_1/", below + "pod_1/a.json", below + "pod_1//" + trials[0] + ".json", below + "pod_1/a/" + trials[1] + ".json",
		below + trials[1] + ".json", below + "pod_1/" + trials[1] + ".txt",
	} {
		s := newMemory()
		first := start(t, keeperOf(s, "pod_1"))
		first.started("pod_1", trials[0])
		if err := first.leave(); err != nil {
			t.Fatal(err)
		}
		s.objects[key] = []byte("{}")
		second := start(t, keeperOf(strict{s}, "pod_2"))
		if ended, _ := second.hello["ended"].(map[string]any); len(ended) != 1 || ended[trials[0]] == nil {
			t.Errorf("beside %q the next execution receives %v", key, second.hello)
		}
		if err := second.leave(); err != nil {
			t.Errorf("beside %q: %v", key, err)
		}
	}
}

// strict is a store that rejects keys that are no clean paths, as those of package store do.
type strict struct{ *memory }

func (s strict) Get(ctx context.Context, key string) ([]byte, error) {
	if key != path.Clean(key) {
		return nil, fmt.Errorf("key %q is not a clean relative path", key)
	}
	return s.memory.Get(ctx, key)
}

func TestKeeper_InvalidMessagesAreRejected(t *testing.T) {
	cases := map[string]string{
		"an attempt of another block":                      `{"attempt":` + strings.ReplaceAll(attemptOf("pod_1", trials[1], ""), `"block":"w000-b0000"`, `"block":"w000-b0001"`) + `}`,
		"an attempt of another execution":                  `{"attempt":` + attemptOf("pod_2", trials[1], "") + `}`,
		"an attempt with a path out of its folder":         `{"attempt":` + attemptOf("pod_1", "../../x", "") + `}`,
		"an attempt of a trial that is not planned":        `{"attempt":` + attemptOf("pod_1", block+"-s00009", "") + `}`,
		"a second attempt of a trial":                      `{"attempt":` + attemptOf("pod_1", trials[0], `,"x":2`) + `}`,
		"the start of a trial that has its attempt":        `{"started":` + attemptOf("pod_1", trials[0], "") + `}`,
		"an attempt of a trial other than the running one": `{"attempt":` + attemptOf("pod_1", trials[2], "") + `}`,
		"a start while another trial is under way":         `{"started":` + attemptOf("pod_1", trials[2], "") + `}`,
		"a start of the same trial":                        `{"started":` + attemptOf("pod_1", trials[1], "") + `}`,
		"no attempt at all":                                `{"attempt":"x"}`,
		"nothing":                                          `{}`,
	}
	for name, line := range cases {
		t.Run(name, func(t *testing.T) {
			s := newMemory()
			r := start(t, keeperOf(s, "pod_1"))
			r.started("pod_1", trials[0])
			r.attempt("pod_1", trials[0], "")
			r.started("pod_1", trials[1])
			before := s.keys()
			if got := r.say(line); got["refused"] == nil {
				t.Errorf("got %v", got)
			}
			err := r.leave()
			if err == nil {
				t.Error("the keeper does not answer")
			}
			after := s.keys()
			// The only new object is the attempt of the trial that was under way.
			if want := append(before, ledger.AttemptKey(block, "pod_1", trials[1])); len(after) != len(want) ||
				s.attempt(t, "pod_1", trials[0])["x"] != nil {
				t.Errorf("the ledger has %v and had %v", after, before)
			}
		})
	}
}

// againAfter returns a Retrier on a simulated clock on which every pause takes a minute.
func againAfter(paused func(failures int)) *store.Retrier {
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	return &store.Retrier{
		Pause: func(failures int) time.Duration { paused(failures); return time.Minute },
		Log:   func(string) {}, Now: func() time.Time { return now },
		Wait: func(_ context.Context, pause time.Duration) error { now = now.Add(pause); return nil },
	}
}

// After a key rotation the store has the new key before the pods do. A key that stays wrong must not block until the deadline.
func TestKeeper_RejectedCredentialsEndTheBlockWithARemedy(t *testing.T) {
	wrong := &store.Fault{
		Cause: store.CauseSecretKey, Tried: "write", Found: "no", Remedy: "correct the secret key in Secret lab/assay-ledger",
	}
	const ever = 1 << 30
	cases := map[string]struct {
		// before and during are the numbers of operations that fail, before the first trial and after its start.
		before, during int
		err            error
		kept           bool
	}{
		"the key is wrong from the start":          {ever, ever, wrong, false},
		"the key becomes wrong while a trial runs": {0, ever, wrong, false},
		"the new key arrives two minutes later":    {0, 2, wrong, true},
		"the store is unreachable for an hour":     {0, 60, store.ErrUnreachable, true},
		"the bucket is missing":                    {0, ever, store.ErrNoBucket, false},
		"the store fails for an hour and recovers": {0, 60, &store.Fault{Cause: store.CauseServer}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newMemory()
			s.away, s.err = tc.before, tc.err
			k := keeperOf(s, "pod_1")
			pauses := 0
			k.Again = againAfter(func(int) {
				if pauses++; pauses > 1000 {
					panic("the block does not end")
				}
			})
			r := start(t, k)
			said := r.hello
			if tc.before == 0 {
				if got := r.started("pod_1", trials[0]); got["kept"] != trials[0] {
					t.Fatalf("got %v", got)
				}
				s.mutex.Lock()
				s.away = tc.during
				s.mutex.Unlock()
				said = r.attempt("pod_1", trials[0], "")
			}
			if (said["kept"] == trials[0]) != tc.kept {
				t.Errorf("the runner receives %v", said)
			}
			err := r.leave()
			if (err == nil) != tc.kept {
				t.Errorf("the keeper returns %v", err)
			}
			if fault, ok := errors.AsType[*store.Fault](tc.err); !tc.kept && ok && !strings.Contains(fmt.Sprint(said["refused"]), fault.Remedy) {
				t.Errorf("the runner does not receive the remedy: %v", said)
			}
			// The retry budget is spent once, and not again for the trial under way.
			if !tc.kept && pauses > 8 {
				t.Errorf("%d pauses of a minute", pauses)
			}
		})
	}
}

func TestKeeper_UnreachableStoreBlocksTheNextTrial(t *testing.T) {
	s := newMemory()
	k := keeperOf(s, "pod_1")
	var pauses []int
	k.Again = againAfter(func(failures int) { pauses = append(pauses, failures) })
	s.away = 2
	r := start(t, k)
	s.mutex.Lock()
	s.away = 5
	s.mutex.Unlock()
	if got := r.started("pod_1", trials[0]); got["kept"] != trials[0] {
		t.Fatalf("got %v", got)
	}
	if got := r.attempt("pod_1", trials[0], ""); got["kept"] != trials[0] {
		t.Fatalf("got %v", got)
	}
	if err := r.leave(); err != nil || len(pauses) != 7 {
		t.Errorf("%v after pauses %v", err, pauses)
	}
}

func TestKeeper_StoppedBlockWritesTheReceivedAttempt(t *testing.T) {
	s := newMemory()
	k := keeperOf(s, "pod_1")
	away, back := make(chan struct{}), make(chan struct{})
	var once sync.Once
	k.Again = againAfter(func(int) { once.Do(func() { close(away); <-back }) })
	r := start(t, k)
	r.started("pod_1", trials[0])
	s.mutex.Lock()
	s.away = 3
	s.mutex.Unlock()
	// After a stop the runner does not wait for an answer.
	lines := `{"attempt":` + attemptOf("pod_1", trials[0], "") + "}\n" + `{"stopped":"SIGTERM"}` + "\n"
	go func() {
		_, _ = r.conn.Write([]byte(lines))
		r.conn.Close()
	}()
	<-away
	if keys := s.keys(); len(keys) != 2 {
		t.Fatalf("the unreachable store has %v", keys)
	}
	close(back)
	if err := <-r.done; err != nil {
		t.Error(err)
	}
	if got := s.attempt(t, "pod_1", trials[0]); got["outcome"] != "Succeeded" {
		t.Errorf("got %v", got)
	}
}

// A lease is in force until its end is in the ledger, independently of clocks.
func TestKeeper_EndedLeaseFencesTheBlock(t *testing.T) {
	lease := record.Lease{Node: "node-a", Token: 7}
	keeperUnder := func(s *memory) *Keeper {
		k := keeperOf(s, "pod_1")
		k.Lease = &lease
		return k
	}
	kept := func(s *memory, trial string) any { return s.attempt(t, "pod_1", trial)["kept"] }

	s := newMemory()
	r := start(t, keeperUnder(s))
	r.started("pod_1", trials[0])
	r.attempt("pod_1", trials[0], "")
	r.started("pod_1", trials[1])
	if err := s.Create(t.Context(), ledger.LeaseEndKey(lease), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if got := r.attempt("pod_1", trials[1], ""); got["kept"] != trials[1] {
		t.Errorf("the attempt before the end of the lease is not written: %v", got)
	}
	got := r.started("pod_1", trials[2])
	if text := fmt.Sprint(got["refused"]); !strings.Contains(text, "the lease of node node-a with token 7 has ended") {
		t.Errorf("a trial under an ended lease is answered with %v", got)
	}
	_ = r.leave()
	if got, want := fmt.Sprint(kept(s, trials[0]), kept(s, trials[1])), "map[lease:Held] map[lease:Ended]"; got != want {
		t.Errorf("the attempts record %s, want %s", got, want)
	}
	again := keeperUnder(s)
	again.Executor = "pod_2"
	if err := again.Serve(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "cannot run under it") {
		t.Errorf("a block that begins under an ended lease: %v", err)
	}
}

// timed is a store with another clock.
type timed struct {
	*memory
	ahead time.Duration
}

func (s timed) Time(context.Context, string) (time.Time, error) {
	return time.Now().Add(-s.ahead).Truncate(time.Second), nil
}

func TestKeeper_AttemptRecordsTheClockSkew(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 1500 * time.Millisecond} {
		s := timed{newMemory(), ahead}
		k := keeperOf(s, "pod_1")
		r := start(t, k)
		r.started("pod_1", trials[0])
		r.attempt("pod_1", trials[0], "")
		_ = r.leave()
		var got record.Attempt
		if err := json.Unmarshal(s.objects[ledger.AttemptKey(block, "pod_1", trials[0])], &got); err != nil || got.Kept == nil ||
			got.Kept.Clock == nil {
			t.Fatalf("%v: %+v", err, got.Kept)
		}
		if read := got.Kept.Clock; math.Abs(read.AheadSeconds-ahead.Seconds()) > read.UncertaintySeconds || read.UncertaintySeconds > 5 {
			t.Errorf("a clock that is ahead by %s is recorded as %+v", ahead, *read)
		}
	}
}

func TestKeeper_ExistingObjectIsNotOverwritten(t *testing.T) {
	cases := map[string]struct {
		there string
		kept  bool
	}{
		"the same bytes, as after a lost response": {attemptOf("pod_1", trials[0], "") + "\n", true},
		"other bytes": {"{}", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newMemory()
			r := start(t, keeperOf(s, "pod_1"))
			r.started("pod_1", trials[0])
			key := ledger.AttemptKey(block, "pod_1", trials[0])
			s.mutex.Lock()
			s.objects[key] = []byte(tc.there)
			s.mutex.Unlock()
			got := r.attempt("pod_1", trials[0], "")
			if (got["kept"] != nil) != tc.kept {
				t.Errorf("got %v", got)
			}
			err := r.leave()
			if string(s.objects[key]) != tc.there {
				t.Error("the object was overwritten")
			}
			note := s.objects[ledger.ProblemKey(key)]
			if tc.kept != (note == nil) || tc.kept != (err == nil) {
				t.Errorf("recorded %s, error %v", note, err)
			}
		})
	}
}

func TestKeeper_SecondKeeperOfAnExecutionIsRefused(t *testing.T) {
	s := newMemory()
	r := start(t, keeperOf(s, "pod_1"))
	r.started("pod_1", trials[0])
	_ = r.leave()
	second := start(t, keeperOf(s, "pod_1"))
	err := second.leave()
	if err == nil || !strings.HasPrefix(err.Error(), "this execution was started before: ") || second.hello["refused"] != err.Error() {
		t.Errorf("a second keeper of the same execution returns %v, and its runner receives %v", err, second.hello)
	}
}

func TestAcceptOne_SecondConnectionIsRefused(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := AcceptOne(context.Background(), socket)
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
	}()
	var first net.Conn
	for first == nil {
		first, _ = net.Dial("unix", socket)
	}
	defer first.Close()
	conn := <-accepted
	defer conn.Close()
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket still exists: %v", err)
	}
	if second, err := net.Dial("unix", socket); err == nil {
		second.Close()
		t.Error("a trial could connect after the runner")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := AcceptOne(ctx, socket); !errors.Is(err, context.Canceled) {
		t.Errorf("the pod ends before the block begins: %v", err)
	}
}

func TestTrialsOf_NamesEqualTheRunners(t *testing.T) {
	got := TrialsOf(&record.Block{ID: block, Warmup: []int{0}, Order: []int{0, 1}})
	if !slices.Equal(got, trials) {
		t.Errorf("got %v", got)
	}
	if kills, ok := MemoryKills(); !ok || kills < 0 {
		t.Errorf("kills for memory: %d, %v", kills, ok)
	}
}
