package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/calibration/rehearse"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/outcome"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/store"
)

// nightsOptions configures series measured on this machine with changes of known sizes.
type nightsOptions struct {
	nights, repeat    int
	seed              uint64
	changes           []float64
	root, binDir, out string
	update            string
	// execute measures a night of a series, and executes the due confirming run.
	execute func(ctx context.Context, s *nightSeries, night int) ([]byte, error)
}

// nightSeries is one program over its revisions, and the alerts for it.
type nightSeries struct {
	name string
	// percent is the additional work from night changed on; changed is 0 without a change.
	percent float64
	changed int
	folder  string
	// points are the nights with a point; confirmed are changes in order of confirmation.
	points    []int
	confirmed []toldChange
}

// toldChange is a confirmed change: the night of the alert, and the two nights that bound the shift.
type toldChange struct {
	id              string
	after, from, to int
	slower          bool
}

func newNightsCommand() *cobra.Command {
	var o nightsOptions
	o.execute = o.onThisMachine
	command := &cobra.Command{
		Use: "nights", Short: "Monitor programs on this machine with known changes, and print the detection rates, one JSON line each",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := o.measure(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := calibrate.Print(cmd.OutOrStdout(), nightFigures(all)...); err != nil {
				return err
			}
			heading := fmt.Sprintf("`calibrate nights --nights %d --repeat %d --seed %d`, %s", o.nights, o.repeat, o.seed, measuredHere())
			return update(o.update, "nights", heading+nightTable(all))
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.nights, "nights", 40, "nights of every series")
	flags.IntVar(&o.repeat, "repeat", 1, "series of every change")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the nights on which programs change")
	flags.Float64SliceVar(&o.changes, "change", []float64{0, 2, -2, 5}, "more work after the change, in per cent; 0 is a series without one")
	flags.StringVar(&o.root, "root", ".", "the project's folder")
	flags.StringVar(&o.binDir, "bin-dir", "bin", "folder with assay, assay-runner and spin-kernel")
	flags.StringVar(&o.out, "out", "", "folder for ledgers and histories, kept (default: a temporary one, removed)")
	flags.StringVar(&o.update, "update", "", "also put the table into this document, between its markers")
	return command
}

// settled is the minimum number of nights before and after a change.
const settled = 12

// measure interleaves the nights of all series, so that a drift of the machine affects all of them.
func (o *nightsOptions) measure(ctx context.Context, log io.Writer) ([]*nightSeries, error) {
	if o.nights < 2*settled {
		return nil, fmt.Errorf("invalid --nights %d: a change needs %d nights before and after it, so at least %d are needed", o.nights,
			settled, 2*settled)
	}
	folder := o.out
	if folder == "" {
		var err error
		if folder, err = os.MkdirTemp("", "calibrate-"); err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(folder) }()
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(o.seed, 0x6e69676874))
	var all []*nightSeries
	for i := range o.repeat {
		for _, percent := range o.changes {
			s := &nightSeries{name: fmt.Sprintf("spin-%d-%d", len(all)+1, i+1), percent: percent}
			if percent != 0 {
				s.changed = settled + 1 + random.IntN(o.nights-2*settled+1)
			}
			s.folder = filepath.Join(folder, s.name)
			if err := o.prepare(s); err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	for night := 1; night <= o.nights; night++ {
		for _, s := range all {
			said, err := o.execute(ctx, s, night)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			// A gate that fails also gives an exit code; only the history counts.
			if readErr := s.read(ctx, night); readErr != nil {
				readErr = errors.Join(readErr, err, fmt.Errorf("assay printed: %s", bytes.TrimSpace(said)))
				return nil, fmt.Errorf("%s, night %d: %w", s.name, night, readErr)
			}
		}
		fmt.Fprintf(log, "night %d of %d\n", night, o.nights)
	}
	return all, nil
}

// prepare writes the run that measures the points of a series: the calibration's run without the parameter that is compiled into its
// programs.
func (o *nightsOptions) prepare(s *nightSeries) error {
	set, err := manifest.Read(filepath.Join(o.root, "workflows/calibration/spin-same.yaml"))
	if err != nil {
		return err
	}
	run := set.Runs[0]
	run.Name = s.name
	template := run.Spec.Template
	template.Parameters = slices.DeleteFunc(template.Parameters, func(p assayv1alpha1.Parameter) bool { return p.Name == "work" })
	run.Spec.Arms = []assayv1alpha1.Arm{{Name: points.Anchor, Baseline: true}, {Name: points.Head}}
	run.Spec.Gates = []assayv1alpha1.Gate{{Name: "no-slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}}
	raw, err := yaml.Marshal(run)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.folder), 0o755); err != nil {
		return err
	}
	// Existing files of an earlier call would become part of the series.
	if err := os.Mkdir(s.folder, 0o755); err != nil {
		return fmt.Errorf("invalid --out: %w: name another folder, or delete it", err)
	}
	return os.WriteFile(s.file(), raw, 0o644)
}

func (s *nightSeries) file() string    { return filepath.Join(s.folder, "run.yaml") }
func (s *nightSeries) history() string { return filepath.Join(s.folder, "history") }

func (s *nightSeries) program(revision string) string {
	return filepath.Join(s.folder, "builds", revision, "spin-kernel")
}

// revisionOf returns the name of a night's revision.
func revisionOf(night int) string { return fmt.Sprintf("r%d", night) }

// work returns the number of work units per iteration of a night's program.
func (s *nightSeries) work(night int) int {
	const units = 1000
	if s.changed == 0 || night < s.changed {
		return units
	}
	return units + int(s.percent*units/100)
}

// onThisMachine builds the program of a night, and measures it with the public commands.
func (o *nightsOptions) onThisMachine(ctx context.Context, s *nightSeries, night int) ([]byte, error) {
	kernel, err := filepath.Abs(filepath.Join(o.binDir, "spin-kernel"))
	if err != nil {
		return nil, err
	}
	path := s.program(revisionOf(night))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	program := fmt.Sprintf("#!/bin/sh\nexec '%s' --work=%d \"$@\"\n", kernel, s.work(night))
	if err := os.WriteFile(path, []byte(program), 0o755); err != nil {
		return nil, err
	}
	ledgers := filepath.Join(s.folder, "ledgers", revisionOf(night))
	command := exec.CommandContext(ctx, filepath.Join(o.binDir, "assay"), "run", "--local", s.file(), "--series", s.name,
		"--revision", revisionOf(night), "--programs", s.program(points.Placeholder), "--history", s.history(), "--confirm",
		"--bin-dir", o.binDir, "--out", ledgers)
	said, err := command.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == outcome.CodeMissed {
		err = nil // It alerts.
	}
	if o.out == "" {
		folders, globErr := filepath.Glob(ledgers + "*")
		for _, folder := range folders {
			err = errors.Join(err, os.RemoveAll(folder))
		}
		err = errors.Join(err, globErr)
	}
	return said, err
}

// read reads the history after a night: whether it has a point, and the confirmed changes.
func (s *nightSeries) read(ctx context.Context, night int) error {
	store, err := store.OpenFolder(ctx, s.history())
	if err != nil {
		return err
	}
	kept := archive.Open(store)
	all, err := kept.OfBenchmark(ctx, s.name)
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return fmt.Errorf("its history has %d series; 1 is expected", len(all))
	}
	ofTonight := func(revision string, sequence int64) bool {
		return revision == revisionOf(night) && sequence == int64(night)
	}
	switch newest := all[0].Newest(); {
	case newest != nil && ofTonight(newest.Revision, newest.Sequence):
		s.points = append(s.points, night)
	case !slices.ContainsFunc(all[0].Gaps, func(r series.Record) bool { return ofTonight(r.Head, r.Sequence) }):
		return errors.New("its history has neither a point nor a gap for the night")
	}
	book, err := kept.Book(ctx)
	if err != nil {
		return err
	}
	for _, c := range book.Changes {
		known := slices.ContainsFunc(s.confirmed, func(t toldChange) bool { return t.id == c.ID })
		if !known && c.State != change.Suspected && c.State != change.Invalid {
			s.confirmed = append(s.confirmed, toldChange{c.ID, night, int(c.From), int(c.To), c.Regression()})
		}
	}
	return nil
}

// count returns whether the change of a series was alerted, the number of runs until then including the confirming run, and the number of
// wrong alerts: at another night, in the other direction, or repeated.
func (s *nightSeries) count() (detected bool, delay, wrong int) {
	for _, t := range s.confirmed {
		right := s.changed != 0 && t.from <= s.changed && s.changed <= t.to && t.slower == (s.percent > 0)
		if !right || detected {
			wrong++
			continue
		}
		detected, delay = true, t.after-s.changed+1
	}
	return detected, delay, wrong
}

// nightTally counts the series of one size of change.
type nightTally struct {
	percent                         float64
	series, points, detected, wrong int
	delay                           rehearse.Mean
}

// tallied groups series by the size of their change.
func tallied(all []*nightSeries) []nightTally {
	var out []nightTally
	for _, s := range all {
		at := slices.IndexFunc(out, func(t nightTally) bool { return t.percent == s.percent })
		if at < 0 {
			at, out = len(out), append(out, nightTally{percent: s.percent})
		}
		detected, delay, wrong := s.count()
		t := &out[at]
		t.series, t.points, t.wrong = t.series+1, t.points+len(s.points), t.wrong+wrong
		if detected {
			t.detected++
			t.delay.Add(float64(delay))
		}
	}
	return out
}

func nightFigures(all []*nightSeries) []calibrate.Figure {
	var out []calibrate.Figure
	wrong, count := 0, 0
	for _, t := range tallied(all) {
		wrong, count = wrong+t.wrong, count+t.points
		if t.percent == 0 {
			continue
		}
		size := fmt.Sprintf("%gpct", t.percent)
		out = append(out, calibrate.NewShare(t.detected, t.series).Figure("history.real.recall."+size))
		out = append(out, mean("history.real.delay_runs."+size, "runs", t.delay,
			"mean number of runs from the change to its alert, the confirming run included")...)
	}
	if count == 0 {
		return out
	}
	value, low, high := rehearse.PerCentury(wrong, count)
	return append(out, calibrate.Figure{
		Figure: "history.real.false_alerts_per_100_points", Value: value, Unit: "1", Low: low, High: high, Samples: count,
	})
}

// nightTable formats the tallies as a Markdown table.
func nightTable(all []*nightSeries) string {
	var out strings.Builder
	out.WriteString("| change | series | points | told | after runs | told wrongly |\n| --: | --: | --: | --: | --: | --: |\n")
	for _, t := range tallied(all) {
		size, share, after := "none", "-", "-"
		if t.percent != 0 {
			size, share = fmt.Sprintf("%+g %%", t.percent), fmt.Sprintf("%d of %d", t.detected, t.series)
		}
		if t.delay.Of > 0 {
			value, _, _ := t.delay.Limits()
			after = quantity.Decimals(value, 2)
		}
		fmt.Fprintf(&out, "| %s | %d | %d | %s | %s | %d |\n", size, t.series, t.points, share, after, t.wrong)
	}
	return out.String()
}
