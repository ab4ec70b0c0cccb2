package calibrate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/fixture"
)

// Counts are the results of simulations with several seeds, on one or several machines, of the same code. They accumulate in a file,
// because a rate of 1 % needs more runs than there is time for at once.
type Counts struct {
	// Code is the digest of the sources that plan and judge the simulated runs.
	Code string `json:"code"`
	// Machines that simulated.
	Machines []string `json:"machines"`
	Rows     []Row    `json:"rows"`
}

// Row is the sum of the runs of a scenario and effect.
type Row struct {
	Scenario string   `json:"scenario"`
	Effect   float64  `json:"effect"`
	Seeds    []uint64 `json:"seeds"`
	Tally    *Tally   `json:"counts"`
}

// judgingCode are the folders, below the operator's, whose sources decide the counts.
var judgingCode = []string{"internal/analysis", "internal/design", "internal/experiment", "internal/fixture", "internal/record"}

// CodeDigest returns the digest of the sources below the project's folder that plan and judge simulated runs, and of those in more folders,
// without tests and comments.
func CodeDigest(root string, more ...string) (string, error) {
	hash := sha256.New()
	for _, folder := range slices.Concat(judgingCode, more) {
		err := filepath.WalkDir(filepath.Join(root, "operator", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			fmt.Fprintf(hash, "%s\n", name)
			var tokens scanner.Scanner
			tokens.Init(token.NewFileSet().AddFile(path, -1, len(source)), source, nil, 0)
			for _, tok, text := tokens.Scan(); tok != token.EOF; _, tok, text = tokens.Scan() {
				fmt.Fprintf(hash, "%s %q\n", tok, text)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// ReadCounts reads the counts of a code. Those of other code are discarded, as are those of a file that does not exist.
func ReadCounts(path, code string) (*Counts, error) {
	return readCounts(path, &Counts{Code: code}, func(found *Counts) bool { return found.Code == code })
}

// readCounts reads the counts of a file if they belong to the code. It returns empty ones otherwise, and without the file.
func readCounts[T any](path string, empty *T, belong func(found *T) bool) (*T, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return nil, err
	}
	found := new(T)
	if err := json.Unmarshal(raw, found); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !belong(found) {
		return empty, nil
	}
	return found, nil
}

// writeCounts writes counts of few rows.
func writeCounts(path string, counts any) error {
	raw, err := json.MarshalIndent(counts, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}

// NextSeed returns a seed that none of the runs had.
func (c *Counts) NextSeed() uint64 {
	next := uint64(1)
	for _, row := range c.Rows {
		next = max(next, slices.Max(row.Seeds)+1)
	}
	return next
}

// Add adds the tallies of a seed.
func (c *Counts) Add(machine string, seed uint64, tallies []Tally) {
	for i := range tallies {
		t := &tallies[i]
		at := slices.IndexFunc(c.Rows, func(row Row) bool { return row.Scenario == t.Scenario.Name && row.Effect == t.Effect })
		if at < 0 {
			at, c.Rows = len(c.Rows), append(c.Rows, Row{Scenario: t.Scenario.Name, Effect: t.Effect, Tally: &Tally{}})
		}
		row := &c.Rows[at]
		row.Seeds = append(row.Seeds, seed)
		row.Tally.add(*t)
	}
	if !slices.Contains(c.Machines, machine) {
		c.Machines = append(c.Machines, machine)
	}
}

// Tallies returns the sums in the order of the scenarios.
func (c *Counts) Tallies() []Tally {
	var out []Tally
	for _, scenario := range fixture.Scenarios() {
		for _, row := range c.Rows {
			if row.Scenario == scenario.Name {
				sum := *row.Tally
				sum.Scenario, sum.Effect = scenario, row.Effect
				out = append(out, sum)
			}
		}
	}
	return out
}

// Write writes the counts, a line for each row.
func (c *Counts) Write(path string) error {
	var out bytes.Buffer
	head, err := json.Marshal(Counts{Code: c.Code, Machines: c.Machines})
	if err != nil {
		return err
	}
	out.WriteString(strings.TrimSuffix(string(head), "null}") + "[")
	for i, row := range c.Rows {
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteString(",")
		}
		out.WriteString("\n" + string(line))
	}
	out.WriteString("\n]}\n")
	return os.WriteFile(path, out.Bytes(), 0o644)
}
