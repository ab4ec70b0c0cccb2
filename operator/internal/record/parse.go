package record

import (
	"bytes"
	"embed"
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

// The schemas are copied because an embedded file must lie inside the module; a test fails when the copies differ.
//go:generate cp ../../../workloads/schema/attempt.schema.json ../../../workloads/schema/result.schema.json ../../../workloads/schema/wave.schema.json schema/

//go:embed schema/*.schema.json
var schemaFiles embed.FS

const schemaBase = "https://assay.dev/schema/v1alpha1/"

// kinds of records, each with a schema.
var kinds = []string{"attempt", "result", "wave"}

// acceptors compiles the schemas into the form that only says yes, once.
var acceptors = sync.OnceValue(func() map[string]*acceptor {
	out, err := compileAcceptors()
	if err != nil {
		panic(err) // The files are part of the program, and a test compiles them.
	}
	return out
})

// schemas compiles the three schemas once.
var schemas = sync.OnceValue(func() map[string]*jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for _, name := range kinds {
		raw, err := schemaFiles.ReadFile("schema/" + name + ".schema.json")
		if err != nil {
			panic(err) // The files are part of the program.
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			panic(err)
		}
		if err := compiler.AddResource(schemaBase+name+".schema.json", document); err != nil {
			panic(err)
		}
	}
	out := map[string]*jsonschema.Schema{}
	for _, name := range kinds {
		out[name] = compiler.MustCompile(schemaBase + name + ".schema.json")
	}
	return out
})

// ParseAttempt reads one attempt. The error says which field is wrong.
func ParseAttempt(raw []byte) (*Attempt, error) { return parse[Attempt]("attempt", raw) }

// ParseWave reads the plan of one wave. The error says which field is wrong.
func ParseWave(raw []byte) (*Wave, error) { return parse[Wave]("wave", raw) }

// ParseResult reads what one process printed. The error says which field is wrong.
func ParseResult(raw []byte) (*Result, error) { return parse[Result]("result", raw) }

// parse checks the bytes against the schema and decodes them strictly: no unknown or repeated field, names in their exact
// case. The schema is the format; the strict decoding catches what it cannot express.
func parse[T any](kind string, raw []byte) (*T, error) {
	if acceptors()[kind].accepts(raw) {
		var value T
		if json.Unmarshal(raw, &value, json.RejectUnknownMembers(true), wholeNumbers) == nil {
			return &value, nil
		}
	}
	return parseSlowly[T](kind, raw)
}

// wholeNumbers keeps numbers of any type whole where they are, as the strict decoding does.
var wholeNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, into *any) error {
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
}))

// parseSlowly is the reference of parse, and says what is wrong.
func parseSlowly[T any](kind string, raw []byte) (*T, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%s is truncated or not JSON: %w", kind, err)
	}
	if err := schemas()[kind].Validate(document); err != nil {
		return nil, fmt.Errorf("%s does not match its schema: %s", kind, explain(err))
	}
	var value T
	strict, err := kjson.UnmarshalStrict(raw, &value)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", kind, err)
	}
	if len(strict) > 0 {
		return nil, fmt.Errorf("%s cannot be read: %w", kind, errors.Join(strict...))
	}
	return &value, nil
}

// explain puts the deepest violations into one line: the field, then what is wrong with it.
func explain(err error) string {
	var violation *jsonschema.ValidationError
	if !errors.As(err, &violation) {
		return err.Error()
	}
	var found []string
	printer := message.NewPrinter(language.English)
	var walk func(*jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		if len(v.Causes) == 0 {
			found = append(found, fmt.Sprintf("%s: %s", strings.Join(append([]string{"$"}, v.InstanceLocation...), "."), v.ErrorKind.LocalizedString(printer)))
		}
		for _, cause := range v.Causes {
			walk(cause)
		}
	}
	walk(violation)
	slices.Sort(found)
	found = slices.Compact(found)
	const shown = 3
	if len(found) > shown {
		found = append(found[:shown], fmt.Sprintf("and %d more", len(found)-shown))
	}
	return strings.Join(found, "; ")
}
