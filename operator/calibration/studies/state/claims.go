// Package state reports how far the studies are from their documents and from the current tree: claims without an answer, and results of
// other programs, templates or run files.
package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/calibration/studies/reference"
)

// Claim is a claim, criterion, expectation or recommendation of a document, with exactly one of the six ways in which it is answered or
// not: Gate, Asks, Shown, Test, Elsewhere, Open.
type Claim struct {
	// ID names it in the study. At, Says and When are its place in the document, its words and its condition.
	ID   string `json:"id"`
	At   string `json:"at"`
	Says string `json:"says"`
	When string `json:"when"`
	// Run is the file of the run that answers it, and Gate the gate, of the candidate Arm if it is not of all. Where are the settings of the
	// condition, which the run, the gate and the results have to have.
	Run   string            `json:"run,omitempty"`
	Gate  string            `json:"gate,omitempty"`
	Arm   string            `json:"arm,omitempty"`
	Where map[string]string `json:"where,omitempty"`
	// Asks are references to cells of runs that end in a condition, which together are the claim: it is answered if all of them hold, or if
	// one fails. A run without a result answers nothing yet.
	Asks []string `json:"asks,omitempty"`
	// Shown are references to cells of runs that end in a condition, which have to hold: they show the answer.
	Shown []string `json:"shown,omitempty"`
	// Test is a test of a workload.
	Test string `json:"test,omitempty"`
	// Elsewhere is the resource that is missing here.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Open is the measurement that is missing.
	Open string `json:"open,omitempty"`
	// Answer is the answer in words, which Gate and Asks may omit: their answer is the outcome.
	Answer string `json:"answer,omitempty"`
}

// Document is the file document/claims.yaml of a study.
type Document struct {
	Title  string  `json:"document"`
	Claims []Claim `json:"claims"`
	// Figures are other figures of the document that pages repeat.
	Figures []Claim `json:"figures,omitempty"`
}

// Answered are the claims of a study by their answers.
type Answered struct {
	Claims, Elsewhere int
	// Unanswered are claims whose measurement is missing, or whose gate is not decided, each with the reason.
	Unanswered []string
	// Invalid are mistakes of the file: no answer, an answer that does not hold, or a condition that is not that of the gate.
	Invalid []string
}

// ReadClaims checks the claims of a study, a folder below the root of a checkout.
func ReadClaims(root, study string, library *reference.Library) (Answered, error) {
	file := filepath.Join(study, "document", "claims.yaml")
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return Answered{}, err
	}
	var document Document
	if err := yaml.UnmarshalStrict(raw, &document); err != nil {
		return Answered{}, fmt.Errorf("%s: %w", file, err)
	}
	out := Answered{Claims: len(document.Claims)}
	seen := map[string]bool{}
	page := reference.Page{Path: filepath.Join(study, "README.md")}
	for _, claim := range document.Claims {
		invalid := func(format string, args ...any) {
			out.Invalid = append(out.Invalid, fmt.Sprintf("%s: claim %s: ", file, claim.ID)+fmt.Sprintf(format, args...))
		}
		unanswered := func(reason string) {
			out.Unanswered = append(out.Unanswered, fmt.Sprintf("%s: %s: %s", study, claim.ID, reason))
		}
		if claim.ID == "" || claim.At == "" || claim.Says == "" || claim.When == "" || seen[claim.ID] {
			invalid("it needs a unique id, and at, says and when: its place, words and condition")
		}
		seen[claim.ID] = true
		ways := 0
		given := []bool{
			claim.Gate != "", len(claim.Asks) > 0, len(claim.Shown) > 0, claim.Test != "", claim.Elsewhere != "", claim.Open != "",
		}
		for _, way := range given {
			if way {
				ways++
			}
		}
		switch {
		case ways != 1:
			invalid("it has %d of gate, asks, shown, test, elsewhere and open: write one", ways)
		case claim.Elsewhere != "":
			out.Elsewhere++
		case claim.Open != "":
			unanswered(claim.Open)
		case claim.Answer == "" && claim.Gate == "" && len(claim.Asks) == 0:
			invalid("it has no answer: write answer, in words")
		case claim.Test != "":
			if !library.HasTest(claim.Test) {
				invalid("no workload has the test %q", claim.Test)
			}
		case claim.Gate != "":
			reason, err := gateAnswer(library, page, claim)
			if err != nil {
				invalid("%v", err)
			} else if reason != "" {
				unanswered(reason)
			}
		case len(claim.Asks) > 0:
			reason, err := asksAnswer(library, page, claim)
			if err != nil {
				invalid("%v", err)
			} else if reason != "" {
				unanswered(reason)
			}
		default:
			for _, label := range claim.Shown {
				if err := shownAnswer(library, page, claim, label); err != nil {
					invalid("%v", err)
				}
			}
		}
	}
	return out, nil
}

// gateAnswer returns why the gate of a claim does not answer it, or "". A gate that is Go or NoGo answers.
func gateAnswer(library *reference.Library, page reference.Page, claim Claim) (reason string, err error) {
	name := strings.TrimSuffix(claim.Run, ".yaml")
	for key, value := range claim.Where {
		if err := library.HasSetting(page, claim.Run, key, value); err != nil {
			return "", err
		}
	}
	if err := library.HasGate(page, claim.Run, claim.Gate, claim.Where); err != nil {
		return "", err
	}
	outcomes, err := library.Outcomes(page, name, claim.Gate, claim.Arm, claim.Where)
	switch {
	case errors.Is(err, reference.ErrNoResult):
		return claim.Run + " has no result yet", nil
	case err != nil:
		return "the result has no answer: " + err.Error(), nil
	}
	for _, undecided := range []string{"Inconclusive", "Invalid", ""} {
		if slices.Contains(outcomes, undecided) {
			return fmt.Sprintf("gate %s of %s is %s", claim.Gate, claim.Run, undecided), nil
		}
	}
	return "", nil
}

// asksAnswer returns why the cells of a claim do not answer it, or "". They do if all conditions hold, or if one does not.
func asksAnswer(library *reference.Library, page reference.Page, claim Claim) (reason string, err error) {
	for _, label := range claim.Asks {
		if err := hasSettings(library, page, claim, label); err != nil {
			return "", err
		}
		holds, decided, err := library.Decide(page, label)
		switch {
		case errors.Is(err, reference.ErrNoResult):
			run, _, _ := strings.Cut(label, ": ")
			return run + " has no result yet", nil
		case err != nil:
			return "", err
		case decided && !holds:
			return "", nil
		case !decided:
			reason = fmt.Sprintf("%q is not decided", label)
		}
	}
	return reason, nil
}

// shownAnswer checks a reference with a condition. Its run has to have the settings of the claim's condition.
func shownAnswer(library *reference.Library, page reference.Page, claim Claim, label string) error {
	if err := library.Holds(page, label); err != nil {
		return err
	}
	return hasSettings(library, page, claim, label)
}

// hasSettings checks that the run of a label has the settings of a claim's condition.
func hasSettings(library *reference.Library, page reference.Page, claim Claim, label string) error {
	run, _, _ := strings.Cut(label, ": ")
	run = strings.TrimPrefix(run, "cluster/")
	run, _, _ = strings.Cut(run, "/")
	for key, value := range claim.Where {
		if err := library.HasSetting(page, run+".yaml", key, value); err != nil {
			return err
		}
	}
	return nil
}
