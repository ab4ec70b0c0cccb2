package html

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	stdhtml "html"
	"html/template"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	xhtml "golang.org/x/net/html"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	summary "assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/chart"
	"assay.dev/assay/operator/test/cputime"
	"assay.dev/assay/operator/test/scanned"
)

type story struct {
	exp      *experiment.Experiment
	result   *analysis.Analysis
	evidence record.Evidence
}

func simulated(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec),
	tamper func([]record.Attempt)) story {
	t.Helper()
	exp, result, evidence := scanned.Run(t, scanned.Noisy, 8, edit, tamper)
	return story{exp, result, evidence}
}

func (s story) page(t *testing.T) string {
	t.Helper()
	raw, err := Render(s.exp, s.result, s.evidence)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestPage_VerdictComesFirst(t *testing.T) {
	page := simulated(t, nil, nil).page(t)
	if n := strings.Count(page, "<h2>Notes</h2>"); n != 1 {
		t.Errorf("notes are said %d times", n)
	}
	order := []string{"<h1>", "slower than loop", "Next step: The verdict is decided", `<figure class="one"><svg`, "Candidates", "<h2>Notes</h2>",
		"<h2>Gates</h2>", "Along the sweep", "Block by block", "Every trial", "Results", "Noise and environment",
		"The run and its data", "Reproduction"}
	at := 0
	for _, heading := range order {
		next := strings.Index(page[at:], heading)
		if next < 0 {
			t.Fatalf("%q is missing or out of order", heading)
		}
		at += next
	}
}

func TestPage_LoadsNoResources(t *testing.T) {
	page := simulated(t, nil, nil).page(t)
	for _, outside := range []string{`<script`, `<link`, `<img`, `<iframe`, `src=`, `url(`, `@import`} {
		if strings.Contains(page, outside) {
			t.Errorf("the page has %s", outside)
		}
	}
	for _, href := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(href[1], "data:") {
			continue // A file in the page, to download.
		}
		if !strings.HasPrefix(href[1], "#") {
			t.Errorf("the page links to %s", href[1])
		} else if !strings.Contains(page, `id="`+href[1][1:]+`"`) {
			t.Errorf("nothing has the id of the link %s", href[1])
		}
	}
}

// The author of a run chooses the numbers of points and metrics, and the operator renders its page.
func TestPage_RenderingTimeIsBounded(t *testing.T) {
	s := simulated(t, nil, nil)
	like := s.exp.Plan.Metrics[0]
	s.exp.Plan.Metrics, s.exp.Points, s.result.Arms, s.result.Ratios = nil, nil, nil, nil
	for i := range 20 {
		like.Name = fmt.Sprintf("metric%d", i)
		s.exp.Plan.Metrics = append(s.exp.Plan.Metrics, like)
	}
	for i := range 1500 {
		key := fmt.Sprintf("batchSize=%d", i)
		s.exp.Points = append(s.exp.Points, record.Point{Key: key, Parameters: map[string]string{"batchSize": strconv.Itoa(i)}})
		for _, metric := range s.exp.Plan.Metrics {
			for arm := range s.exp.Arms {
				s.result.Arms = append(s.result.Arms, analysis.ArmResult{
					Point: key, Arm: s.exp.Arms[arm].Name, Metric: metric.Name, Statistic: metric.Statistic,
					Estimate: analysis.Estimate{Value: 1, Unit: metric.Unit, Blocks: 5},
				})
			}
		}
	}
	used := cputime.Start()
	newReport(s.exp, s.result, s.evidence)
	if took := used(); took > 10*time.Second {
		t.Errorf("%d figures took %s", len(s.result.Arms), took)
	}
}

// A refresh redirects a browser even if the policy of the page forbids scripts. The tokenizer implements the algorithm of browsers.
func TestPage_HasNoRedirect(t *testing.T) {
	ours := simulated(t, nil, nil).page(t)
	if string(Inert([]byte(ours))) != ours {
		t.Error("a page of ours is changed")
	}
	for _, forged := range []string{
		`<META HTTP-EQUIV=refresh CONTENT="0;url=https://example.org">`,
		"<meta/hTTp-eQuiv\n=\nrefresh content=0;https://example.org>",
		`<p title='><meta http-equiv="refresh" content="0">`,
		`<meta name=a http-equiv=set-cookie content=b>`,
	} {
		for _, before := range []string{"", Beginning, Beginning + Beginning} {
			directives := 0
			tokens := xhtml.NewTokenizer(bytes.NewReader(Inert([]byte(before + forged))))
			for tokens.Next() != xhtml.ErrorToken {
				for _, attribute := range tokens.Token().Attr {
					if attribute.Key == "http-equiv" {
						directives++
					}
				}
			}
			if directives != 1 {
				t.Errorf("%d directives, and only the policy is one: %s", directives, before+forged)
			}
		}
	}
}

func TestPage_TextOfProcessIsEscaped(t *testing.T) {
	evil := `"><script>alert(1)</script>`
	s := simulated(t, nil, func(attempts []record.Attempt) {
		attempts[0].Outcome, attempts[0].Result, attempts[0].Message = record.Failed, nil, evil
		for i := range attempts {
			attempts[i].Environment.Hard["cpuModel"] = evil
		}
	})
	page := s.page(t)
	if strings.Contains(page, "<script") {
		t.Error("text became an element")
	}
	if !strings.Contains(page, "&lt;script&gt;") {
		t.Error("the text is not shown at all")
	}
}

func TestPage_GatesDrawnAgainstBounds(t *testing.T) {
	s := simulated(t, nil, nil)
	page := s.page(t)
	judged := 0
	for _, gate := range s.result.Gates {
		if gate.Bound != nil && gate.Estimate != nil && gate.Estimate.Low != nil {
			judged++
		}
	}
	if drawn := strings.Count(page, `<td class="plot"><svg`); judged == 0 || drawn != judged {
		t.Errorf("%d of %d gates are drawn", drawn, judged)
	}
}

func TestPage_ExcludedTrialsAreHollow(t *testing.T) {
	s := simulated(t, nil, func(attempts []record.Attempt) {
		for i := range attempts {
			busy := 0.01
			attempts[i].Noise.During.OtherWorkRatio = &busy
		}
		last := &attempts[len(attempts)-1]
		last.Outcome, last.Result, last.Message = record.Failed, nil, "exit status 1"
	})
	page := s.page(t)
	if !strings.Contains(page, `class="moment out"`) || !strings.Contains(page, "exit status 1") {
		t.Error("the failed trial is neither drawn nor listed")
	}
}

func TestPage_UnusualRuns(t *testing.T) {
	for name, edit := range map[string]func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec){
		"without gates": func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Gates, spec.Predictions = nil, nil
		},
		"without a sweep": func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Sweep, spec.Gates, spec.Predictions = nil, nil, nil
			spec.Parameters = assayv1alpha1.ParameterValues{"batchSize": "8"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if page := simulated(t, edit, nil).page(t); !strings.Contains(page, "No verdict") {
				t.Error("the page does not say that there is no verdict")
			}
		})
	}
	t.Run("in which every trial failed", func(t *testing.T) {
		s := simulated(t, nil, func(attempts []record.Attempt) {
			for i := range attempts {
				attempts[i].Outcome, attempts[i].Result, attempts[i].Message = record.Failed, nil, "exit status 1"
			}
		})
		if page := s.page(t); !strings.Contains(page, "Invalid") {
			t.Error("the page does not say Invalid")
		}
	})
}

func TestPage_IsDeterministic(t *testing.T) {
	first, second := simulated(t, nil, nil).page(t), simulated(t, nil, nil).page(t)
	if first != second {
		t.Error("two pages of one analysis differ")
	}
}

func TestPage_EveryElementIsClosed(t *testing.T) {
	page := simulated(t, nil, nil).page(t)
	if plots := strings.Count(page, "<svg"); plots < 10 {
		t.Errorf("only %d plots", plots)
	}
	if err := unclosed(page); err != nil {
		t.Error(err)
	}
	for what, wrong := range map[string]string{
		"an element that is left open": "<main><p>a</main>", "a list in a paragraph": "<p>a<ul></ul></p>", "a paragraph in one": "<p><b><p>a</p></b></p>",
	} {
		if unclosed(wrong) == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

// unclosed returns an error for an element that is not closed at its level, or that a browser moves out of its paragraph. Browsers differ
// in the place of both.
func unclosed(page string) error {
	// HTML writes some elements without an end and some attributes without a value.
	page = regexp.MustCompile(`<(meta|link|input|br)\b([^>]*)>`).ReplaceAllString(page, "<$1$2/>")
	page = strings.ReplaceAll(page, " checked/>", ` checked=""/>`)
	decoder := xml.NewDecoder(strings.NewReader(page))
	paragraphs := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			switch name := token.Name.Local; name {
			case "p":
				paragraphs++
			case "article", "details", "div", "dl", "figure", "h1", "h2", "h3", "ol", "pre", "section", "table", "ul":
				if paragraphs > 0 {
					return fmt.Errorf("%s is in a paragraph at byte %d", name, decoder.InputOffset())
				}
			}
			if paragraphs > 1 {
				return fmt.Errorf("a paragraph is in a paragraph at byte %d", decoder.InputOffset())
			}
		case xml.EndElement:
			if token.Name.Local == "p" {
				paragraphs--
			}
		}
	}
}

func TestPage_CustomTablesPrecedeCompleteOne(t *testing.T) {
	page := simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Report = &assayv1alpha1.Report{Tables: []assayv1alpha1.ReportTable{{
			Name: "document", Title: "As <in> the document", Columns: []assayv1alpha1.ReportColumn{{Title: "ms/batch", Metric: "latency", Scale: "m"}},
		}}}
	}, nil).page(t)
	own, complete := strings.Index(page, "<h2>As &lt;in&gt; the document</h2>"), strings.Index(page, "<h2>Results</h2>")
	if own < 0 || own > complete || !strings.Contains(page[own:complete], "ms/batch") {
		t.Errorf("the table is at %d, the complete one at %d", own, complete)
	}
}

func TestPage_TopNamesAssumptions(t *testing.T) {
	s := simulated(t, nil, nil)
	page := s.page(t)
	const inShort = "Assumes no drift, warm-up or sessions of one arm over several blocks, and no rare slowdown of one arm"
	short, details := strings.Index(page, inShort), strings.Index(page, `<section id="assumptions"`)
	if cards := strings.Index(page, "<h2>Candidates</h2>"); short < 0 || short > cards || details < cards ||
		!strings.Contains(page[details:], "assumes that no arm drifts") {
		t.Errorf("the assumptions are at %d, the candidates at %d, the details at %d", short, cards, details)
	}
	s.result.Assumptions = nil
	if page := s.page(t); strings.Contains(page, "Assumes ") || strings.Contains(page, `id="assumptions"`) {
		t.Error("a page without assumptions names some")
	}
}

func TestPage_GatesShowDetectableEffect(t *testing.T) {
	page := simulated(t, nil, nil).page(t)
	for _, want := range []string{"Diagnostics of the blocks of every gate",
		"<th>autocorrelation</th>",
		"from the spread of blocks"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// embedded is a file in the page, as a browser downloads it.
func embedded(t *testing.T, page, name string) string {
	t.Helper()
	got := regexp.MustCompile(`<a download="` + regexp.QuoteMeta(name) + `" href="data:[a-z/]+;base64,([^"]*)"`).FindStringSubmatch(page)
	if got == nil {
		t.Fatalf("the page does not hold %s", name)
	}
	raw, err := base64.StdEncoding.DecodeString(stdhtml.UnescapeString(got[1]))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestPage_EmbedsRunAndData(t *testing.T) {
	s := simulated(t, nil, nil)
	page := s.page(t)
	manifest, err := summary.Manifest(s.exp)
	if err != nil {
		t.Fatal(err)
	}
	if got := embedded(t, page, "run.yaml"); got != string(manifest) {
		t.Errorf("run.yaml is\n%s", got)
	}
	if got := embedded(t, page, "table.csv"); got != string(summary.CSV(s.exp, s.result)) {
		t.Errorf("table.csv is\n%s", got)
	}
	var result analysis.Analysis
	if err := json.Unmarshal([]byte(embedded(t, page, "analysis.json")), &result); err != nil || result.Evidence != s.result.Evidence {
		t.Errorf("analysis.json is of %q (%v)", result.Evidence, err)
	}
	if !strings.Contains(page, `<pre class="whole">apiVersion: assay.dev/v1alpha1`) {
		t.Error("the manifest cannot be copied")
	}
	s.result.Layout = strings.Repeat("x", maxEmbedded)
	if page := s.page(t); strings.Contains(page, `download="analysis.json"`) ||
		!strings.Contains(page, "Too large for the page, and in the ledger beside it: analysis.json (1 MiB)") {
		t.Error("the omission of the analysis is not reported")
	}
}

func TestPage_OmittedPlotsAreNamed(t *testing.T) {
	s := simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Sweep.Axes = []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"1", "8"}}, {Name: "pendingDelta"}}
		for i := range 9 {
			spec.Sweep.Axes[1].Values = append(spec.Sweep.Axes[1].Values, strconv.Itoa(i))
		}
		spec.Budget.Trials = 5000
	}, nil)
	page := s.page(t)
	if !strings.Contains(page, "more plots are not drawn; their figures are in analysis.json") {
		t.Error("block by block has more than 12 plots, and nothing says which are left out")
	}
	b := newBuilder(s.exp, s.result, s.evidence)
	all := b.pairs()
	// A plot for each of 9 points, 2 candidates and 3 gates on figures, each of which has a point of the other axis; slo has both.
	if want := 9 * 2 * 3; len(all.Plots) != maxPanels || len(all.Plots)+len(all.Left) != want {
		t.Errorf("%d drawn and %d named of %d", len(all.Plots), len(all.Left), want)
	}
	crowd := panels{Where: inResults}
	for i := range maxPanels + maxNamed + 5 {
		crowd.add(strconv.Itoa(i), func() template.HTML { return "" })
	}
	if len(crowd.Named()) != maxNamed || crowd.Further() != 5 {
		t.Errorf("%d are named and %d counted", len(crowd.Named()), crowd.Further())
	}
}

func TestPage_ReadingsWithoutPlotAreNamed(t *testing.T) {
	page := simulated(t, nil, func(attempts []record.Attempt) {
		for i := range attempts {
			zero := 0.0
			attempts[i].Noise.During.StealRatio, attempts[i].Noise.During.OtherWorkRatio = &zero, nil
		}
	}).page(t)
	for _, want := range []string{"Read, and never above zero: CPU time taken by the hypervisor",
		"Not read on this machine: other work on the trial"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestPage_SeriesAreHiddenWithoutScript(t *testing.T) {
	page := simulated(t, nil, nil).page(t)
	for i := range chart.MaxSeries {
		if class := chart.Class(i); !strings.Contains(page, "section:has(.show."+class+":not(:checked)) .chart ."+class) {
			t.Errorf("no style hides series %s", class)
		}
	}
	if !strings.Contains(page, `<input type="checkbox" class="show s2" checked>`) {
		t.Error("there is nothing to click")
	}
}

func TestPage_MeaninglessDetectableEffectIsOmitted(t *testing.T) {
	s := simulated(t, nil, nil)
	for i := range s.result.Gates {
		huge := 20.788
		s.result.Gates[i].MinimumDetectableEffect = &huge
	}
	if page := s.page(t); strings.Contains(page, "2078.8 %") {
		t.Error("it is shown")
	}
}

// Each link to a term leads to its explanation, and each explained term is linked from the page.
func TestPage_TermsAreExplained(t *testing.T) {
	page := simulated(t, nil, nil).page(t)
	linked := map[string]bool{}
	for _, match := range regexp.MustCompile(`href="#term-([a-z-]+)"`).FindAllStringSubmatch(page, -1) {
		linked[match[1]] = true
	}
	for _, term := range terms {
		if !strings.Contains(page, `<dt id="term-`+term.ID+`">`) || strings.Contains(term.Text, "\n") {
			t.Errorf("term %s has no explanation of one line", term.ID)
		}
		if !linked[term.ID] {
			t.Errorf("term %s is explained and linked from nowhere", term.ID)
		}
		delete(linked, term.ID)
	}
	if len(linked) > 0 {
		t.Errorf("terms without an explanation: %v", linked)
	}
	if _, err := linkToTerm("unknown", "x"); err == nil {
		t.Error("an unknown term is linked")
	}
}
