package record

import (
	"bytes"
	"embed"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	kjson "sigs.k8s.io/json"
)

// The schemas are copied, because an embedded file must be inside the module; a test fails if the copies differ.
//
//go:generate go run ./gen

//go:embed schema/*.schema.json
var schemaFiles embed.FS

const schemaBase = "https://assay.dev/schema/v1alpha1/"

// kinds of records, each with a schema.
var kinds = []string{"attempt", "result", "wave"}

// readSchema returns the schema of a kind as a document.
func readSchema(kind string) any {
	raw, err := schemaFiles.ReadFile("schema/" + kind + ".schema.json")
	if err != nil {
		panic(err) // The files are embedded.
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	return document
}

// schemas compiles the three schemas once.
var schemas = sync.OnceValue(func() map[string]*jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for _, name := range kinds {
		if err := compiler.AddResource(schemaBase+name+".schema.json", readSchema(name)); err != nil {
			panic(err)
		}
	}
	out := map[string]*jsonschema.Schema{}
	for _, name := range kinds {
		out[name] = compiler.MustCompile(schemaBase + name + ".schema.json")
	}
	return out
})

// ParseWave parses the plan of one wave. The error names the invalid field.
func ParseWave(raw []byte) (*Wave, error) {
	wave, err := parse[Wave]("wave", raw, strict)
	if err == nil {
		if err = wave.check(); err != nil {
			err = fmt.Errorf("invalid wave: %w", err)
		}
	}
	return wave, err
}

// check rejects references out of range and duplicate names, because slots with these would silently have no trial.
func (w *Wave) check() error {
	for i, cell := range w.Cells {
		if cell.Point >= len(w.Points) || cell.Arm >= len(w.Arms) {
			return fmt.Errorf("cells[%d] is arm %d at point %d, and there are %d arms and %d points, counted from 0", i, cell.Arm, cell.Point,
				len(w.Arms), len(w.Points))
		}
	}
	seen := map[string]bool{}
	for i, block := range w.Blocks {
		if seen[block.ID] {
			return fmt.Errorf("blocks[%d].id %q is used twice: identifiers must be unique", i, block.ID)
		}
		seen[block.ID] = true
		if prefix := WavePrefix(w.Wave); !strings.HasPrefix(block.ID, prefix) {
			return fmt.Errorf("blocks[%d].id is %q: blocks of wave %d begin with %s", i, block.ID, w.Wave, prefix)
		}
		for slot, index := range slices.Concat(block.Warmup, block.Order) {
			if index >= len(w.Cells) {
				return fmt.Errorf("blocks[%d] has cell %d in slot %d (warm-ups first), and there are %d cells, counted from 0", i, index, slot,
					len(w.Cells))
			}
		}
	}
	return nil
}

// parse checks the bytes against the schema and decodes them strictly: no unknown or repeated field, names in their exact case. The schema
// defines the format; strict decoding rejects errors that it cannot express.
func parse[T any](kind string, raw []byte, options json.Options) (*T, error) {
	var slow *T
	if !acceptors()[kind].accepts(raw) {
		var err error
		if slow, err = parseSlowly[T](kind, raw); err != nil {
			return nil, err
		}
	}
	// Sharing covers objects that only the validator accepts too, because programs choose their output, and unshared attempts take much
	// more memory.
	var value T
	if json.Unmarshal(raw, &value, options) == nil {
		return &value, nil
	}
	if slow != nil {
		return slow, nil
	}
	return parseSlowly[T](kind, raw)
}

// strict decodes objects that an acceptor has checked for duplicate names and invalid UTF-8.
var strict = json.JoinOptions(json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	json.WithUnmarshalers(wholeNumber))

// wholeNumber decodes whole numbers in fields of any type as integers, as strict decoding does.
var wholeNumber = json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, into *any) error {
	if decoder.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	raw, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	if number, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		*into = number
		return nil
	}
	*into, err = strconv.ParseFloat(string(raw), 64)
	return err
})

// parseSlowly is the reference implementation of parse, and reports errors.
func parseSlowly[T any](kind string, raw []byte) (*T, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%s is truncated or not JSON: %w", kind, err)
	}
	if document, err = settle(document); err != nil {
		return nil, fmt.Errorf("%s cannot be decoded: %w", kind, err)
	}
	if err := schemas()[kind].Validate(document); err != nil {
		return nil, fmt.Errorf("%s does not match its schema: %s", kind, explain(err))
	}
	var value T
	if err := Strictly(raw, &value); err != nil {
		return nil, fmt.Errorf("%s cannot be decoded: %w", kind, err)
	}
	return &value, nil
}

// Strictly decodes JSON, and rejects unknown, misspelt and duplicate fields.
func Strictly(raw []byte, into any) error {
	violations, err := kjson.UnmarshalStrict(raw, into)
	return errors.Join(append(violations, err)...)
}

// settle limits numbers to the range of Go's types. The validator converts numbers to fractions, and that of 1e-99999999 does not fit into
// memory.
func settle(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case stdjson.Number:
		near, err := strconv.ParseFloat(value.String(), 64)
		if err != nil {
			return nil, fmt.Errorf("invalid number %.40s: allowed are those that 64 bits hold, up to 1.8e308", value)
		}
		if near == 0 {
			return stdjson.Number("0"), nil
		}
	case []any:
		for i := range value {
			if value[i], err = settle(value[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range value {
			if value[name], err = settle(value[name]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// explain formats the deepest violations in one line, each with its field.
func explain(err error) string {
	var violation *jsonschema.ValidationError
	if !errors.As(err, &violation) {
		return err.Error()
	}
	var lines []string
	printer := message.NewPrinter(language.English)
	var walk func(*jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		if len(v.Causes) == 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", strings.Join(append([]string{"$"}, v.InstanceLocation...), "."),
				v.ErrorKind.LocalizedString(printer)))
		}
		for _, cause := range v.Causes {
			walk(cause)
		}
	}
	walk(violation)
	slices.Sort(lines)
	lines = slices.Compact(lines)
	const shown = 3
	if len(lines) > shown {
		lines = append(lines[:shown], fmt.Sprintf("and %d more", len(lines)-shown))
	}
	return strings.Join(lines, "; ")
}
