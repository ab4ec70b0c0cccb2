// Command chaos hurts an embedded cluster with Assay on it in every way it knows, by a schedule that a seed makes, while small
// runs measure. At the end it reads the ledgers, and nothing else, and prints how many trials were lost or counted twice, how
// many blocks were on one node at once, how many runs hang, and how many attempts were written over.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"
	"github.com/minio/minio-go/v7"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// atOnceRuns is how many runs there are at a time: one that measures and one that waits for its node.
const atOnceRuns = 2

func main() {
	var (
		seed     = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the schedule; the same seed gives the same faults")
		faults   = flag.Int("faults", 200, "how many")
		least    = flag.Int("least", 0, "how many of them have to come about within -duration; 0 is all")
		duration = flag.Duration("duration", time.Hour, "no fault begins later than this")
		pause    = flag.Duration("pause", 5*time.Second, "between two faults, on average")
		settle   = flag.Duration("settle", 8*time.Minute, "how long runs may take to end after the last fault")
		limit    = flag.Duration("limit", 3*time.Hour, "limit for the whole suite: unfinished runs are judged in their current state")
		short    = flag.Bool("short", false, "leave out the kinds that take minutes, and those that need a dedicated store")
		only     = flag.String("kinds", "", "names of kinds, joined by commas; default: all")
		out      = flag.String("out", "", "folder for the ledgers and findings")
		list     = flag.Bool("list", false, "print the schedule and hurt nothing")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	kinds, err := chosen(*only, *short)
	if err == nil && *list {
		err = json.NewEncoder(os.Stdout).Encode(Schedule(*seed, kinds, *faults, *pause))
		kinds = nil
	}
	if err == nil && kinds != nil {
		err = run(ctx, suite{*seed, kinds, *faults, cmp.Or(*least, *faults), *duration, *pause, *settle, *limit, *out})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// chosen are the kinds asked for.
func chosen(only string, short bool) ([]Kind, error) {
	known := map[string]Kind{}
	var kinds []Kind
	for _, made := range makes {
		known[made.Name] = made.Kind
		if !short || !made.Long && !made.OwnStore {
			kinds = append(kinds, made.Kind)
		}
	}
	if only == "" {
		return kinds, nil
	}
	kinds = nil
	for name := range strings.SplitSeq(only, ",") {
		kind, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("invalid -kinds %q: allowed are %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

func connect() (*world, error) {
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), assayv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	// A frozen API server does not answer.
	config.Timeout = 20 * time.Second
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &world{
		kube: kube,
		node: node{
			name:  cmp.Or(os.Getenv("ASSAY_CLUSTER_NAME"), "assay-cluster"),
			state: cmp.Or(os.Getenv("ASSAY_CLUSTER_STATE"), "/var/lib/assay-cluster"),
			tool:  cmp.Or(os.Getenv("ASSAY_CLUSTER_TOOL"), "bin/cluster"),
		},
		suite: runPrefix + strconv.FormatInt(time.Now().Unix(), 36),
	}, nil
}

// suite holds the options.
type suite struct {
	seed                           uint64
	kinds                          []Kind
	faults, least                  int
	duration, pause, settle, limit time.Duration
	out                            string
}

func run(ctx context.Context, s suite) error {
	w, err := connect()
	if err != nil {
		return err
	}
	limited, end := context.WithTimeout(ctx, s.limit)
	defer end()
	if slices.ContainsFunc(s.kinds, func(k Kind) bool { return k.OwnStore }) {
		if err := w.ownStore(limited); err != nil {
			return err
		}
	}
	store, err := openObjects(ctx, w)
	if err != nil {
		return err
	}
	if err := wait(limited, 2*time.Minute, "the bucket exists", func(ctx context.Context) error {
		if exists, err := store.client.BucketExists(ctx, bucket); err != nil || exists {
			return err
		}
		return store.client.MakeBucket(ctx, bucket, minio.MakeBucketOptions{})
	}); err != nil {
		return err
	}
	prefix := "runs/" + namespace + "/" + w.suite + "-"
	say("seed %d: %d faults of %d kinds within %s", s.seed, s.faults, len(s.kinds), s.duration)

	background, stop := context.WithCancel(ctx)
	defer stop()
	submitting, enough := context.WithCancel(background)
	var workers sync.WaitGroup
	seen, looks := Seen{}, 0
	workers.Go(func() { submit(submitting, w) })
	var watcher sync.WaitGroup
	watcher.Go(func() {
		every(background, 2*time.Second, func(ctx context.Context) {
			if store.look(ctx, prefix, seen) == nil {
				looks++
			}
		})
	})

	// A fault without a target does not count, and another one replaces it.
	injected := hurt(limited, w, Schedule(s.seed, s.kinds, 2*s.faults, s.pause), s.faults, s.duration)
	enough()
	workers.Wait()
	say("%d faults injected; the runs that are left may end", total(injected))
	healed := errors.Join(w.repair(ctx), w.ready(ctx))
	if err := wait(limited, s.settle, "every run has ended", func(ctx context.Context) error { return allEnded(ctx, w) }); err != nil {
		say("%v", err)
	}
	stop()
	watcher.Wait()
	judging, judged := context.WithTimeout(ctx, 2*time.Minute)
	defer judged()
	findings, err := judge(judging, w, store, prefix, seen, injected, s.out)
	if err != nil {
		return errors.Join(healed, err)
	}
	say("%d runs, %d trials, %d attempts, listed %d times; faults: %v", findings.Runs, findings.Trials, findings.Objects, looks, injected)
	for _, line := range findings.wrong() {
		say("FOUND %s", line)
	}
	encoder := json.NewEncoder(os.Stdout)
	for _, figure := range findings.Figures(total(injected)) {
		if err := encoder.Encode(figure); err != nil {
			return err
		}
	}
	if err := errors.Join(healed, s.verdict(findings, injected)); err != nil {
		return err
	}
	// A suite without findings removes its objects; its ledgers stay.
	return w.kube.DeleteAllOf(judging, &assayv1alpha1.BenchmarkRun{}, client.InNamespace(namespace),
		client.MatchingLabels{suiteLabel: w.suite})
}

// verdict returns why a suite proved nothing.
func (s suite) verdict(findings Findings, injected map[string]int) error {
	var out []error
	if wrong := len(findings.wrong()); wrong > 0 {
		out = append(out, fmt.Errorf("%d findings; seed %d makes the same schedule again", wrong, s.seed))
	}
	if count := total(injected); count < s.least {
		out = append(out, fmt.Errorf("%d faults were injected within %s, and %d are asked for: allow more time (-duration), or ask for fewer "+
			"(-faults, -least)", count, s.duration, s.least))
	}
	if findings.Trials == 0 {
		out = append(out, errors.New("no trial was looked at: no run has got as far as its analysis"))
	}
	return errors.Join(out...)
}

func total(injected map[string]int) (sum int) {
	for _, count := range injected {
		sum += count
	}
	return sum
}

// every does something repeatedly until it is stopped.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			limited, cancel := context.WithTimeout(ctx, 10*time.Second)
			do(limited)
			cancel()
		}
	}
}

// submit keeps a bounded number of runs going.
func submit(ctx context.Context, w *world) {
	next := 0
	every(ctx, time.Second, func(ctx context.Context) {
		there, err := w.cluster(ctx)
		if err != nil || len(there.going()) >= atOnceRuns {
			return
		}
		// A frozen API server may have created it nevertheless.
		if err := w.kube.Create(ctx, smallRun(w.suite, next)); err == nil || apierrors.IsAlreadyExists(err) {
			next++
		}
	})
}

// hurt injects the faults of the schedule until the requested number took effect, and counts them by kind.
func hurt(ctx context.Context, w *world, events []Event, faults int, duration time.Duration) map[string]int {
	makeOf := map[string]func(*world, uint64) Fault{}
	for _, made := range makes {
		makeOf[made.Name] = made.make
	}
	injected, began := map[string]int{}, time.Now()
	for _, event := range events {
		pause(ctx, event.After)
		if ctx.Err() != nil || time.Since(began) > duration || total(injected) == faults {
			break
		}
		fault := makeOf[event.Kind](w, event.Draw)
		err := fault.Inject(ctx)
		if err == nil {
			injected[event.Kind]++
			say("%s for %s", event.Kind, event.Hold.Round(time.Millisecond))
			pause(ctx, event.Hold)
		} else {
			say("%s was not injected: %v", event.Kind, err)
		}
		// Not under ctx, because stopped processes must continue when the suite is interrupted.
		if err := fault.Heal(context.WithoutCancel(ctx)); err != nil {
			say("%s is not healed: %v", event.Kind, err)
		}
	}
	return injected
}

func pause(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// allEnded returns the unfinished runs, and the resources that finished runs leaked.
func allEnded(ctx context.Context, w *world) error {
	there, err := w.cluster(ctx)
	if err != nil {
		return err
	}
	if left := append(there.going(), there.kept()...); len(left) > 0 {
		return errors.New(strings.Join(left, "\n"))
	}
	return nil
}

// judge reads the ledgers and checks them.
func judge(ctx context.Context, w *world, store *objects, prefix string, seen Seen, injected map[string]int, out string) (Findings, error) {
	if err := store.look(ctx, prefix, seen); err != nil {
		return Findings{}, err
	}
	byRun, err := store.ledgers(ctx, prefix)
	if err != nil {
		return Findings{}, err
	}
	there, err := w.cluster(ctx)
	if err != nil {
		return Findings{}, err
	}
	for i := range there.runs {
		one := &there.runs[i]
		key := fmt.Sprintf("runs/%s/%s/%s", one.Namespace, one.Name, one.UID)
		if byRun[key] == nil {
			byRun[key] = &Ledger{Run: key, Objects: map[string][]byte{}}
		}
		byRun[key].Ended = ended(one)
	}
	var ledgers []Ledger
	for _, key := range slices.Sorted(maps.Keys(byRun)) {
		ledgers = append(ledgers, *byRun[key])
		if out == "" {
			continue
		}
		for name, object := range byRun[key].Objects {
			path := filepath.Join(out, key, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return Findings{}, err
			}
			if err := os.WriteFile(path, object, 0o644); err != nil {
				return Findings{}, err
			}
		}
	}
	findings := Check(ledgers, seen, injected)
	findings.Stuck = append(findings.Stuck, there.kept()...)
	return findings, nil
}
