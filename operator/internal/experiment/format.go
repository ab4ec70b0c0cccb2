package experiment

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Format is the version of the ledger format that Freeze writes into experiment.json, for the whole ledger. A change that programs of the
// current format would misread raises it and adds an entry to parsers; the entry of the version before stays.
const Format = 1

// parsers are the parsers of experiment.json, by the formats that this program reads.
var parsers = map[int]func(raw []byte) (*Experiment, error){1: parse}

// Parse reads an experiment.json of any format that this program reads.
func Parse(raw []byte) (*Experiment, error) {
	format, err := readFormat(raw)
	if err != nil {
		return nil, err
	}
	return parsers[format](raw)
}

// CheckFormat returns an error if this program does not read the format of the ledger with this experiment.json. It checks nothing else.
func CheckFormat(raw []byte) error {
	_, err := readFormat(raw)
	return err
}

func readFormat(raw []byte) (int, error) {
	var found struct {
		Format json.RawMessage `json:"format"`
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		return 0, err
	}
	var allowed []string
	for _, format := range slices.Sorted(maps.Keys(parsers)) {
		if allowed = append(allowed, fmt.Sprint(format)); string(found.Format) == fmt.Sprint(format) {
			return format, nil
		}
	}
	if found.Format == nil {
		return 0, fmt.Errorf("invalid format of the ledger: found none, allowed %s; write \"format\": %d into an experiment.json that was "+
			"written by hand, and measure other runs again", strings.Join(allowed, ", "), Format)
	}
	return 0, fmt.Errorf("invalid format of the ledger: found %.40s, allowed %s; use the version of Assay that wrote it", found.Format,
		strings.Join(allowed, ", "))
}
