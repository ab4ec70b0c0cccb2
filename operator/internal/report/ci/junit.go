package ci

import (
	"encoding/xml"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/report"
)

// The elements of a JUnit report, as the schema of Jenkins' xUnit plugin has them (junit-10.xsd), which GitLab and others read too.
type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Suite    suite    `xml:"testsuite"`
	}
	suite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		File     string `xml:"file,attr,omitempty"`
		Cases    []test `xml:"testcase"`
		Out      string `xml:"system-out,omitempty"`
	}
	test struct {
		Class   string `xml:"classname,attr"`
		Name    string `xml:"name,attr"`
		Failure *note  `xml:"failure"`
		Error   *note  `xml:"error"`
		Skipped *note  `xml:"skipped"`
		Out     string `xml:"system-out,omitempty"`
	}
	note struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit renders a test case for the run and for every gate, candidate and point. Gates other than Go that do not fail the run are skipped:
// advisory gates, candidates beside one that is Go, and accepted Inconclusive ones.
func (r *Result) JUnit() ([]byte, error) {
	whole := test{Class: "assay", Name: legal(r.Title), Out: legal(r.Sentence)}
	r.judge(&whole, r.Verdict, !r.Passed, r.Word(), r.Sentence)
	cases := []test{whole}
	for _, gate := range r.Gates {
		one := test{Class: legal("assay." + r.Title + "." + gate.Candidate), Name: legal(gate.Gate), Out: legal(gate.Asked + ": " + gate.Message)}
		if gate.Point != "" {
			one.Name += legal(" at " + gate.Point)
		}
		if gate.Outcome != experiment.VerdictGo {
			r.judge(&one, gate.Outcome, r.stands(gate), string(gate.Outcome), gate.Asked+": "+gate.Message)
		}
		cases = append(cases, one)
	}
	var failures, errors, skipped int
	for _, one := range cases {
		switch {
		case one.Failure != nil:
			failures++
		case one.Error != nil:
			errors++
		case one.Skipped != nil:
			skipped++
		}
	}
	var log strings.Builder
	for _, warning := range r.Warnings {
		log.WriteString("warning: " + warning.Text + "\n")
		for _, more := range warning.More {
			log.WriteString("warning: " + more + "\n")
		}
	}
	out := suites{
		Name: "assay", Tests: len(cases), Failures: failures, Errors: errors,
		Suite: suite{
			Name: legal(r.Title), Tests: len(cases), Failures: failures, Errors: errors, Skipped: skipped,
			File: legal(r.File), Cases: cases, Out: legal(log.String()),
		},
	}
	raw, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(xml.Header), append(raw, '\n')...), nil
}

// judge sets the outcome of a test that is not Go.
func (r *Result) judge(one *test, verdict experiment.Verdict, stands bool, kind, message string) {
	// GitLab shows the text and no attribute.
	says := &note{Type: legal(kind), Message: legal(message), Text: legal(message)}
	switch {
	case !stands && verdict == experiment.VerdictGo:
	case !stands:
		one.Skipped = says
	case verdict == "" || verdict == experiment.VerdictInvalid:
		one.Error = says
	default:
		one.Failure = says
	}
}

// legal replaces characters that XML 1.0 does not allow, and escapes others that are not shown.
func legal(s string) string {
	return report.Visible(strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= 0x10FFFF {
			return r
		}
		return '\uFFFD'
	}, strings.ToValidUTF8(s, "\uFFFD")))
}
