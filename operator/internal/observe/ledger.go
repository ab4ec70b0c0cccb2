package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/pages"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// RunStore is the store of one run's ledger.
func RunStore(s store.Store, run *assayv1alpha1.BenchmarkRun) store.Store {
	return store.WithPrefix(s, ledger.RunPrefix(record.Run{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID)}))
}

// JudgedStore is the store of one run's ledger with the accepted analysis only.
func JudgedStore(s store.Store, run *assayv1alpha1.BenchmarkRun) store.Store {
	accepted := Written(run.Status.Analysis)
	if accepted == nil {
		accepted = &ledger.Written{Wave: -1}
	}
	return ledger.Accepted(RunStore(s, run), accepted, nil)
}

// Written identifies the accepted analysis of a status; nil if there is none.
func Written(accepted *assayv1alpha1.AnalysisStatus) *ledger.Written {
	if accepted == nil {
		return nil
	}
	return &ledger.Written{
		Wave: int(accepted.Wave), Analysis: accepted.SHA256, Report: accepted.ReportSHA256, Evidence: accepted.EvidenceSHA256,
	}
}

// Problem is the condition reason of a ledger's error: one for each place where a person repairs it. The message has the details.
func Problem(err error) string {
	switch store.CauseOf(err) {
	case store.CauseExpired, store.CauseNotYetValid, store.CauseAuthority, store.CauseHostname, store.CauseCertificate,
		store.CauseCAFile:
		return assayv1alpha1.ReasonLedgerCertificate
	case store.CauseNoCredentials, store.CauseAccessKey, store.CauseSecretKey, store.CauseToken:
		return assayv1alpha1.ReasonLedgerCredentials
	case store.CauseDenied:
		return assayv1alpha1.ReasonLedgerDenied
	case store.CauseClock:
		return assayv1alpha1.ReasonLedgerClock
	case store.CauseUnconditional:
		return assayv1alpha1.ReasonLedgerUnsuitable
	default: // The kind of the error decides.
	}
	switch {
	case errors.Is(err, store.ErrNoBucket):
		return assayv1alpha1.ReasonLedgerMissing
	case errors.Is(err, store.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		return assayv1alpha1.ReasonLedgerUnreachable
	default:
		return assayv1alpha1.ReasonLedgerDamaged
	}
}

func (o *Observer) ledger(ctx context.Context, world *World) error {
	store := RunStore(o.Store, world.Run)
	world.LedgerURL = store.URL()
	return away(ctx, world, o.readLedger(ctx, store, world))
}

// away records in the world that the ledger is unreachable.
func away(ctx context.Context, world *World, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	world.Ledger = plan.LedgerState{Problem: Problem(err), Message: err.Error()}
	world.Analysis, world.Accepted, world.ReportURL = nil, nil, ""
	return nil
}

// unread counts the attempts that were written after a stopped wave was analysed, once its blocks have ended. A wave that was not stopped
// has none: the engine starts its analysis after its blocks.
func (o *Observer) unread(ctx context.Context, world *World) error {
	if !world.Ledger.Analysed || world.Wave == nil || !world.Wave.Stopped {
		return nil
	}
	accepted := ledger.Accepted(RunStore(o.Store, world.Run), Written(world.Accepted), nil)
	count, err := ledger.CountUnread(ctx, accepted, world.Ledger.Newest.Wave)
	world.Ledger.Unread = count
	return away(ctx, world, err)
}

func (o *Observer) readLedger(ctx context.Context, store store.Store, world *World) error {
	known, err := o.Memory.read(ctx, store, world.Run.UID)
	if err != nil {
		return err
	}
	if err := belongs(world.Run, known.experiment); err != nil {
		return fmt.Errorf("%s in %s: %w", ledger.ExperimentKey, store.URL(), err)
	}
	state := plan.LedgerState{Experiment: known.experiment, Waves: known.waves}
	for i := range known.waves {
		state.Newest = &known.waves[i]
		state.Trials += state.Newest.Trials()
		state.Measurable += state.Newest.Measured()
	}
	world.Ledger = state
	if state.Newest == nil {
		return nil
	}
	known.progress.retries = known.experiment.Plan.Retries
	done, open, err := known.progress.count(ctx, store, state.Newest)
	if err != nil {
		return err
	}
	world.Ledger.Done, world.Ledger.Measured = done.all, done.measured
	world.Ledger.DoneBlocks, world.Ledger.Open = len(state.Newest.Blocks)-len(open), open
	if world.Ledger.Failing, err = known.progress.failing(ctx, store, known.experiment, state.Newest); err != nil {
		return err
	}
	if world.Ledger.BrokenArms, err = known.progress.brokenArms(ctx, store, known.experiment, state.Newest); err != nil {
		return err
	}
	o.Memory.keep(world.Run.UID, known)
	return nil
}

// analysis reads the newest analysis that its pod reported to have written. Any other one may be of a client with a key of the namespace,
// and counts as missing.
func (o *Observer) analysis(ctx context.Context, world *World, pods []corev1.Pod) error {
	if world.Ledger.Newest == nil {
		return nil
	}
	store := RunStore(o.Store, world.Run)
	known, _ := o.Memory.ledgers.Get(world.Run.UID)
	read := func(pods []corev1.Pod) error {
		err := o.readAnalysis(ctx, store, world, &known, writtenAnalyses(world.Run, pods))
		o.Memory.keep(world.Run.UID, known)
		return err
	}
	err := read(pods)
	if err == nil && !world.Ledger.Analysed && analysisEnded(world) {
		// The cache may show the end of an execution before that of its pods.
		var ended []corev1.Pod
		if err := pages.Each(ctx, o.Live, &corev1.PodList{}, world.Run.Namespace, func(pod *corev1.Pod) {
			if _, ok := writtenBy(pod); ok {
				ended = append(ended, *pod)
			}
		}, client.MatchingLabels{executor.RunUIDLabel: string(world.Run.UID), executor.PartLabel: executor.AnalysisPart}); err != nil {
			return fmt.Errorf("list the pods of analyses: %w", err)
		}
		err = read(ended)
	}
	return away(ctx, world, err)
}

// analysisEnded reports whether an execution that analyses the newest wave has ended.
func analysisEnded(world *World) bool {
	return world.Wave != nil && world.Wave.Ended ||
		slices.ContainsFunc(world.Analyses, func(e plan.Execution) bool { return e.Ended })
}

// readAnalysis reads the newest analysis. A rejected analysis is read again with backoff only: tenants may write one to each of their
// ledgers, and rejecting it takes as long as reading the largest valid one.
func (o *Observer) readAnalysis(ctx context.Context, store store.Store, world *World, known *remembered,
	written map[int][]assayv1alpha1.AnalysisStatus) error {
	run, now := world.Run, o.Clock.Now()
	before := o.Memory.Noted(run).Refused
	if before.err != nil && before.wave == world.Ledger.Newest.Wave && !before.retry.Due(now) {
		return before.err
	}
	err := newestAnalysis(ctx, store, world, known, written)
	switch {
	case err != nil && ctx.Err() == nil && Problem(err) == assayv1alpha1.ReasonLedgerDamaged:
		after := Refused{err, world.Ledger.Newest.Wave, before.retry.Failed(now, ledger.RefusedFirst, ledger.RefusedMost)}
		o.Memory.Note(run, func(n *Notes) { n.Refused = after })
	case err == nil && before.err != nil:
		o.Memory.Note(run, func(n *Notes) { n.Refused = Refused{} })
	}
	return err
}

// belongs returns an error if a frozen experiment is not this run's. A tenant who can write to the ledger could create one before the
// operator does, with names, namespaces and requests that were never checked.
func belongs(run *assayv1alpha1.BenchmarkRun, frozen *experiment.Experiment) error {
	if frozen == nil {
		return nil
	}
	if want := (record.Run{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID)}); frozen.Run != want {
		return fmt.Errorf("it is of run %s/%s with uid %s: remove it and create a new run", frozen.Run.Namespace, frozen.Run.Name, frozen.Run.UID)
	}
	same := equality.Semantic.DeepEqual(frozen.Plan.Placement, experiment.PlacementOf(run.Spec.Placement))
	if !same || (frozen.Plan.Requires.Isolation != "") != run.Spec.Placement.RequireStaticCPUManager {
		return errors.New("its spec.placement is not the run's, so that the operator did not write it: remove it and create a new run")
	}
	return nil
}

// newestAnalysis reads the newest analysis of those that were written. One of an earlier wave is read once: decisions no longer depend on
// it.
func newestAnalysis(ctx context.Context, s store.Store, world *World, known *remembered,
	written map[int][]assayv1alpha1.AnalysisStatus) error {
	newest := world.Ledger.Newest.Wave
	for wave := newest; wave >= 0; wave-- {
		for _, accepted := range written[wave] {
			result, err := known.acceptedAnalysis(ctx, s, &accepted, wave == newest)
			switch {
			case errors.Is(err, ledger.ErrReplaced) && wave == newest:
				world.Ledger.Replaced = err.Error() + ": a client with a key of the namespace wrote it"
			case err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, ledger.ErrReplaced):
				return err
			}
			if result == nil {
				continue
			}
			world.Analysis, world.Accepted = result, &accepted
			world.ReportURL = store.WithPrefix(s, ledger.HTMLKey(wave)).URL()
			if wave == newest {
				world.Ledger.Analysed, world.Ledger.Verdict, world.Ledger.Why = true, result.Verdict, record.Shorten(result.Explanation(), maxWhy)
				world.Ledger.SetupBroken, world.Ledger.Findings = record.Shorten(result.SetupBroken, maxWhy), result.Findings()
				world.Ledger.NeverCompleted = neverCompleted(result)
				world.Ledger.Replaced = ""
			}
			return nil
		}
	}
	return nil
}

// neverCompleted returns the arms with a decided Blocking gate of op Completes that no trial completed.
func neverCompleted(result *analysis.Analysis) (arms []string) {
	for i := range result.Gates {
		gate := &result.Gates[i]
		if gate.Op == experiment.Completes && gate.Severity == experiment.Blocking && gate.Outcome == experiment.VerdictNoGo &&
			gate.Estimate != nil && gate.Estimate.Value == 0 && !slices.Contains(arms, gate.Candidate) {
			arms = append(arms, gate.Candidate)
		}
	}
	return arms
}

// acceptedAnalysis reads an analysis, or returns it if it was read before and is not of the newest wave.
func (r *remembered) acceptedAnalysis(ctx context.Context, s store.Store, accepted *assayv1alpha1.AnalysisStatus, newest bool) (
	*analysis.Analysis, error) {
	if r.judged != nil && !newest && r.judgedSum == accepted.SHA256 {
		return r.judged, nil
	}
	read, room, err := ledger.ReadAnalysis(ctx, ledger.Accepted(s, Written(accepted), nil), int(accepted.Wave))
	if err == nil && !newest {
		r.judged, r.judgedBytes, r.judgedSum = read, room, accepted.SHA256
	}
	return read, err
}

// maxWhy limits a program's error message in the status.
const maxWhy = 600
