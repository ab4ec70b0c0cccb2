package runs

import (
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis/explain"
	"assay.dev/assay/operator/internal/cli/history"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/clitest"
)

func TestPlan_EstimatesBlocksForPrecision(t *testing.T) {
	pilot := explain.Precision{Gate: "faster", Candidate: "new", Blocks: 5, HalfWidth: ptr.To(0.041)}
	with := func(edit func(p *explain.Precision)) explain.Precision {
		out := pilot
		edit(&out)
		return out
	}
	cases := map[string]struct {
		precision explain.Precision
		want      string
	}{
		"a half width": {
			with(func(p *explain.Precision) { p.Wanted, p.Needed = ptr.To(0.01), ptr.To(36) }),
			"faster of new: half width 4.1 % after 5 blocks; about 36 blocks for a half width of 1 %, 54s; blocks.max is 20",
		},
		"a decision": {
			with(func(p *explain.Precision) { p.Point, p.Needed = "batchSize=8", ptr.To(12) }),
			"faster of new at batchSize=8: half width 4.1 % after 5 blocks; about 12 blocks for a decision at the observed effect, 18s",
		},
		"nothing would do": {pilot, "faster of new: half width 4.1 % after 5 blocks; no number of blocks yields a decision at the observed effect"},
		"no interval":      {with(func(p *explain.Precision) { p.HalfWidth = nil }), "faster of new: unknown, because the pilot yields no interval"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Planned{MaxBlocks: 20, BlockSeconds: ptr.To(1.5), MinSeconds: ptr.To(15.0), Pilot: 5, Precision: []explain.Precision{tc.precision}}
			if got := p.needs(tc.precision); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			var out strings.Builder
			printPlan(&out, p)
			if !strings.Contains(out.String(), "needs    "+tc.want) || !strings.Contains(out.String(), "estimated from 5 blocks") {
				t.Error(out.String())
			}
		})
	}
}

func TestRuns_HostileTextIsEscaped(t *testing.T) {
	all := []string{clitest.Hostile}
	for name, print := range map[string]func(io.Writer) error{
		"a point that was measured": func(out io.Writer) error {
			store, err := store.OpenFolder(t.Context(), t.TempDir())
			if err != nil {
				return err
			}
			f := &seriesRun{stdout: out, form: "text", archive: archive.Open(store), asked: &RunFile{file: clitest.Hostile}}
			return f.printPoint(&PointRecorded{
				Series: clitest.Hostile, Revision: clitest.Hostile, Problems: all, Points: []history.RecordView{{Key: clitest.HostileKey(), Kind: series.Gap, Reason: clitest.Hostile}},
				Due: []confirmView{{Change: clitest.Hostile, Old: []points.Revision{{Revision: clitest.Hostile}}, New: []points.Revision{{Revision: clitest.Hostile}}}},
			})
		},
		"a suspicion that was judged": func(out io.Writer) error {
			f := &seriesRun{stdout: out, form: "text"}
			sides := []points.Revision{{Revision: clitest.Hostile}}
			return f.printJudged(&watch.Confirm{Change: clitest.Hostile, Old: sides, New: sides}, change.Holds,
				[]change.Alert{{Change: clitest.Hostile}},
				change.Book{Changes: []change.Change{clitest.HostileChange(time.Now())}})
		},
		"a plan": func(out io.Writer) error {
			printPlan(out, Planned{Run: clitest.Hostile, Arms: all, Gates: all, Lost: []lostTrials{{Arm: clitest.Hostile, Point: clitest.Hostile,
				Reason: clitest.Hostile}}})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) { clitest.CheckPrintable(t, print, false) })
	}
}
