// Package keeper receives every attempt of a block as soon as the trial has ended, out of reach of the trials, and writes it once to the
// ledger. assay-runner starts the next trial after the keeper's acknowledgement.
//
// Both sides write JSON objects, one per line; runner/runner/src/keeper.rs is the other side, and docs/decisions/keeper.md explains the
// design.
package keeper

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// Protocol is the version of the messages that both sides use.
const Protocol = "assay.dev/keeper/v1alpha1"

// maxFrame is the longest line in bytes: the largest attempt and its envelope.
const maxFrame = record.MostAttempt + 1<<10

// Keeper writes the attempts of one execution of one block.
type Keeper struct {
	Store store.Store
	// Block and Executor are part of every key, so that the runner cannot write to other keys.
	Block, Executor string
	// Trials of the block in execution order. Attempts of other trials are rejected.
	Trials []string
	// Lease under which the block runs; nil without one. Its end is in the ledger before another run may have the node.
	Lease *record.Lease
	// Again retries store operations; nil disables retries.
	Again *store.Retrier
	// Kills returns how many processes the kernel of this machine has killed for lack of memory so far, if that is known.
	Kills func() (int64, bool)
	Log   io.Writer
	// Sums are the sha256 sums of the attempts that Serve wrote, by key.
	Sums map[string]string

	// clock is the skew between this machine and the store; nil if unknown.
	clock *record.Clock
	// ended means that the lease has ended, so that no trial may start.
	ended bool
	// underway is the trial that has started and has no attempt yet.
	underway *underway
}

type underway struct {
	trial string
	// attempt is the record to write if the runner sends no further message about the trial.
	attempt json.RawMessage
	began   time.Time
	kills   int64
	counted bool
}

// frame is one line from the runner. Exactly one field is set.
type frame struct {
	Started part   `json:"started"`
	Attempt part   `json:"attempt"`
	Done    bool   `json:"done"`
	Stopped string `json:"stopped"`
	Failed  string `json:"failed"`
}

// part aliases its part of the line instead of copying it, because the largest attempt takes much of the memory limit of the keeper.
type part []byte

// UnmarshalJSON implements json.Unmarshaler.
func (p *part) UnmarshalJSON(raw []byte) error {
	*p = raw
	return nil
}

// Serve handles the messages of the runner until the connection ends. All received attempts are written before Serve returns, however long
// the store is unreachable; only ctx ends it early.
func (k *Keeper) Serve(ctx context.Context, runner io.ReadWriter) error {
	k.Sums = map[string]string{}
	ended, err := k.begin(ctx)
	if err != nil {
		// Without this message the runner could report only a closed connection.
		_ = answer(runner, map[string]string{"refused": err.Error()})
		return err
	}
	if k.clock, err = store.SkewOf(ctx, k.Store, ledger.ExperimentKey, time.Now); err != nil {
		// The clock's skew is used for a warning only, so its failure is not an error.
		k.logf("the clock of this machine could not be compared with the store's: %v", err)
	}
	if err := answer(runner, map[string]any{"keeper": Protocol, "executor": k.Executor, "ended": ended}); err != nil {
		return nil // The connection ended before the block began.
	}
	lines := bufio.NewScanner(runner)
	lines.Buffer(nil, maxFrame)
	for lines.Scan() {
		done, err := k.take(ctx, lines.Bytes(), runner)
		if err != nil {
			return errors.Join(err, k.abandon(ctx, "the runner could not continue: "+err.Error()))
		}
		if done {
			return nil
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return errors.Join(err, k.abandon(ctx, fmt.Sprintf("the attempt has more than %d bytes", record.MostAttempt)))
	}
	return k.abandonSilent(ctx)
}

// begin checks whether the block may run, and returns the trials that ended earlier executions.
func (k *Keeper) begin(ctx context.Context) (ended map[string]string, err error) {
	// The image of this keeper may be of another version than the operator that wrote the ledger.
	check := func() error { return ledger.CheckFormat(ctx, k.Store) }
	if err := k.persist(ctx, "read "+ledger.ExperimentKey, check); err != nil {
		return nil, err
	}
	if ended, err = k.before(ctx); err != nil {
		return nil, err
	}
	if err := k.inForce(ctx); err != nil {
		return nil, err
	}
	if k.ended {
		return nil, k.noLonger()
	}
	return ended, nil
}

// take handles one line; done reports whether it was the last.
func (k *Keeper) take(ctx context.Context, line []byte, runner io.Writer) (done bool, err error) {
	var message frame
	if err := record.Strictly(line, &message); err != nil {
		return false, fmt.Errorf("invalid message from the runner: %w", err)
	}
	var trial string
	switch {
	case message.Started != nil:
		trial, err = k.started(ctx, message.Started)
	case message.Attempt != nil:
		trial, err = k.attempt(ctx, message.Attempt)
	case message.Done:
		return true, nil
	case message.Failed != "":
		return true, k.abandon(ctx, message.Failed)
	case message.Stopped != "":
		if k.underway != nil {
			k.logf("%s was under way when the block was stopped by %s; it has no attempt", k.underway.trial, message.Stopped)
		}
		return true, nil
	default:
		err = errors.New("message from the runner has none of started, attempt, done, failed, stopped")
	}
	if err != nil {
		return false, errors.Join(err, answer(runner, map[string]string{"refused": err.Error()}))
	}
	// If the runner is gone, the next read fails.
	_ = answer(runner, map[string]string{"kept": trial})
	return false, nil
}

// identify reads which trial an attempt is of, and returns an error if the runner may not write that attempt now.
func (k *Keeper) identify(raw part) (record.Started, error) {
	var id record.Started
	if err := json.Unmarshal(raw, &id); err != nil {
		return id, fmt.Errorf("invalid attempt: %w", err)
	}
	switch {
	case id.Block != k.Block || id.ID != k.Executor+"/"+id.Trial:
		return id, fmt.Errorf("invalid attempt: its fields are those of attempt %q of block %q, and this is execution %s of block %s",
			id.ID, id.Block, k.Executor, k.Block)
	case !slices.Contains(k.Trials, id.Trial):
		return id, fmt.Errorf("block %s has no trial %q", k.Block, id.Trial)
	case k.Sums[ledger.AttemptKey(k.Block, k.Executor, id.Trial)] != "":
		return id, fmt.Errorf("trial %s already has its attempt", id.Trial)
	case k.underway != nil && k.underway.trial != id.Trial:
		return id, fmt.Errorf("invalid attempt: it is of trial %s while %s is under way", id.Trial, k.underway.trial)
	}
	return id, nil
}

func (k *Keeper) started(ctx context.Context, raw part) (string, error) {
	id, err := k.identify(raw)
	if err != nil {
		return "", err
	}
	if k.underway != nil {
		return "", fmt.Errorf("trial %s has already started", id.Trial)
	}
	if k.ended {
		return "", k.noLonger()
	}
	id.Schema = record.StartedSchema
	marker, err := json.Marshal(id)
	if err != nil {
		return "", err
	}
	if err := k.write(ctx, ledger.StartedKey(k.Block, k.Executor, id.Trial), append(marker, '\n')); err != nil {
		return "", err
	}
	k.underway = &underway{trial: id.Trial, attempt: bytes.Clone(raw), began: time.Now()}
	if k.Kills != nil {
		k.underway.kills, k.underway.counted = k.Kills()
	}
	return id.Trial, nil
}

func (k *Keeper) attempt(ctx context.Context, raw part) (string, error) {
	id, err := k.identify(raw)
	if err != nil {
		return "", err
	}
	// The check comes after the trial has ended. A lease whose end is not recorded by then was in force during the whole trial,
	// independently of clocks.
	if err := k.inForce(ctx); err != nil {
		return "", err
	}
	key := ledger.AttemptKey(k.Block, k.Executor, id.Trial)
	data, err := k.stamped(raw)
	if err != nil {
		return "", err
	}
	if err := k.write(ctx, key, data); err != nil {
		return "", err
	}
	k.underway, k.Sums[key] = nil, record.SHA256(data)
	return id.Trial, nil
}

// inForce checks whether the ledger has the end of the block's lease.
func (k *Keeper) inForce(ctx context.Context) error {
	if k.Lease == nil || k.ended {
		return nil
	}
	key := ledger.LeaseEndKey(*k.Lease)
	return k.persist(ctx, "read "+key, func() error {
		_, err := k.Store.Get(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		k.ended = err == nil
		return err
	})
}

func (k *Keeper) noLonger() error {
	return fmt.Errorf("the lease of node %s with token %d has ended, and another run may use the node: the block cannot run under it",
		k.Lease.Node, k.Lease.Token)
}

// stamped returns an attempt, which is a non-empty object, with the fields that only the keeper knows.
func (k *Keeper) stamped(raw part) ([]byte, error) {
	kept := record.Kept{Clock: k.clock}
	if k.Lease != nil {
		kept.Lease = record.LeaseHeld
		if k.ended {
			kept.Lease = record.LeaseEnded
		}
	}
	if kept == (record.Kept{}) {
		return slices.Concat(raw, []byte("\n")), nil
	}
	more, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	return slices.Concat(raw[:len(raw)-len("}")], []byte(`,"kept":`), more, []byte("}\n")), nil
}

// abandon records a failed attempt for the trial under way when the runner ends. Without that record the block would be run again, and an
// arm could choose which of its trials count.
func (k *Keeper) abandon(ctx context.Context, why string) error { return k.abandonWith(ctx, why, nil) }

// abandonWith records the events of the kernel too, if any are known.
func (k *Keeper) abandonWith(ctx context.Context, why string, kernel *record.Kernel) error {
	if k.underway == nil {
		return nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(k.underway.attempt, &fields); err != nil {
		return fmt.Errorf("trial %s: %w", k.underway.trial, err)
	}
	const longest = 4000
	why = record.Shorten(why, longest)
	failed := map[string]any{}
	for name, value := range fields {
		failed[name] = value
	}
	failed["outcome"], failed["message"] = record.Failed, why
	failed["durationSeconds"], failed["endedExecution"] = time.Since(k.underway.began).Seconds(), true
	if kernel != nil {
		failed["kernel"] = kernel
	}
	raw, err := json.Marshal(failed)
	if err != nil {
		return err
	}
	k.logf("%s failed: %s", k.underway.trial, why)
	_, err = k.attempt(ctx, raw)
	return err
}

// abandonSilent records a failed attempt if the runner ended without an error message, with the cause as far as the keeper can find out.
// Under version 2 of cgroups the kernel may kill a whole container (memory.oom.group), so that only the keeper can record the cause.
func (k *Keeper) abandonSilent(ctx context.Context) error {
	if k.underway == nil {
		return nil
	}
	const ended = "the runner and all its processes ended without an error message while this trial was running"
	now, known := int64(0), false
	if k.Kills != nil && k.underway.counted {
		now, known = k.Kills()
	}
	if !known {
		return k.abandon(ctx, ended)
	}
	killed := max(0, now-k.underway.kills)
	kernel := &record.Kernel{MachineOOMKills: &killed}
	if killed == 0 {
		return k.abandonWith(ctx, ended+"; meanwhile no process of this machine was killed for lack of memory, so it was killed by the trial "+
			"or from outside", kernel)
	}
	return k.abandonWith(ctx, record.KilledForMemory+": "+ended+"; give the block more memory (spec.placement.memory), or reduce the memory "+
		"use of the workload", kernel)
}

// before reads the trials that ended earlier executions of the block. They are not run again.
func (k *Keeper) before(ctx context.Context) (map[string]string, error) {
	var own, all []string
	err := k.persist(ctx, "list "+k.Block, func() (err error) {
		if own, err = k.Store.List(ctx, ledger.StartedPrefix(k.Block, k.Executor)+"/"); err == nil {
			all, err = k.Store.List(ctx, path.Join("attempts", k.Block)+"/")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	order := map[string]int{}
	for i, trial := range k.Trials {
		order[trial] = i
	}
	last := map[string]string{}
	for _, key := range all {
		executor, trial := path.Base(path.Dir(key)), strings.TrimSuffix(path.Base(key), ".json")
		if executor == k.Executor {
			own = append(own, key)
		}
		// Other keys below the block are not attempts, and may be invalid as keys of a store.
		if _, known := order[trial]; !known || key != ledger.AttemptKey(k.Block, executor, trial) {
			continue
		}
		if before, ok := last[executor]; !ok || order[trial] > order[strings.TrimSuffix(path.Base(before), ".json")] {
			last[executor] = key
		}
	}
	if len(own) > 0 {
		// The keeper of this execution was lost, and with it the only connection that it accepts.
		return nil, fmt.Errorf("this execution was started before: %s is in the ledger", own[0])
	}
	ended := map[string]string{}
	for _, key := range last {
		var raw []byte
		if err := k.persist(ctx, "read "+key, func() (err error) { raw, err = k.Store.Get(ctx, key); return err }); err != nil {
			return nil, err
		}
		var attempt struct {
			Trial, ID, Message string
			EndedExecution     bool
		}
		// The analysis reports attempts that are invalid.
		if json.Unmarshal(raw, &attempt) == nil && attempt.EndedExecution {
			ended[attempt.Trial] = attempt.ID + ": " + attempt.Message
		}
	}
	return ended, nil
}

// write creates an object, with retries while the store is unreachable. If the object exists with other content, it records a
// contradiction.
func (k *Keeper) write(ctx context.Context, key string, data []byte) error {
	err := k.persist(ctx, "write "+key, func() error { return store.EnsureCreated(ctx, k.Store, key, data) })
	if !errors.Is(err, store.ErrExists) {
		return err
	}
	note, marshalErr := json.Marshal(record.Contradiction{
		Schema: record.ContradictionSchema, Key: key, SHA256: record.SHA256(data), Reason: err.Error(),
	})
	if marshalErr != nil {
		return errors.Join(err, marshalErr)
	}
	// Of several contradictions the first one is recorded.
	noteErr := k.persist(ctx, "write "+ledger.ProblemKey(key), func() error {
		return k.Store.Create(ctx, ledger.ProblemKey(key), append(note, '\n'))
	})
	if errors.Is(noteErr, store.ErrExists) {
		noteErr = nil
	}
	return errors.Join(err, noteErr)
}

// persist retries a store operation until it succeeds or fails permanently.
func (k *Keeper) persist(ctx context.Context, what string, do func() error) error {
	if k.Again == nil {
		return do()
	}
	return k.Again.Do(ctx, what, do)
}

func (k *Keeper) logf(format string, args ...any) {
	if k.Log != nil {
		_, _ = fmt.Fprintf(k.Log, "keeper: "+format+"\n", args...)
	}
}

func answer(to io.Writer, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		_, err = to.Write(append(raw, '\n'))
	}
	return err
}
