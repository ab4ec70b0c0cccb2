package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/test/records"
)

// If valid fixtures were not accepted, reading a ledger would be as slow as the validator.
func TestAcceptor_ValidFixturesAreAccepted(t *testing.T) {
	for name, raw := range records.All(t, "valid") {
		kind, _, _ := strings.Cut(name, "-")
		if !acceptors()[kind].accepts(raw) && !strings.Contains(name, "escape") {
			t.Errorf("%s is valid and not accepted", name)
		}
	}
}

// An acceptor ignores keywords that it does not know, and would accept too much.
func TestAcceptor_SchemasHaveKnownKeywords(t *testing.T) {
	known := strings.Fields("$schema $id $defs $ref title description enumDescriptions contentEncoding type const enum minLength maxLength " +
		"pattern format minimum exclusiveMinimum maximum items minItems maxItems properties required additionalProperties propertyNames " +
		"minProperties maxProperties oneOf")
	var walk func(file string, schema any)
	walk = func(file string, schema any) {
		of, ok := schema.(map[string]any)
		if !ok {
			return // additionalProperties: false
		}
		for keyword, value := range of {
			switch {
			case !slices.Contains(known, keyword):
				t.Errorf("%s has the keyword %s: teach the acceptor to check it", file, keyword)
			case keyword == "properties" || keyword == "$defs":
				for _, one := range value.(map[string]any) {
					walk(file, one)
				}
			case keyword == "items" || keyword == "additionalProperties" || keyword == "propertyNames":
				walk(file, value)
			case keyword == "format" && value != "date-time":
				t.Errorf("%s has the format %v: teach the acceptor to check it", file, value)
			case keyword == "$ref" && of["description"] == nil && len(of) > 1:
				t.Errorf("%s has keywords beside $ref %s, which the acceptor ignores", file, value)
			case keyword == "oneOf":
				for _, one := range value.([]any) {
					if alternative := one.(map[string]any); len(alternative) != 1 || len(alternative["required"].([]any)) != 1 {
						t.Errorf("%s has an alternative %v of more than one required member", file, one)
					}
				}
			}
		}
	}
	for _, kind := range kinds {
		walk(kind, readSchema(kind))
	}
}

// The validator accepts every accepted object, and both ways of reading give the same value.
func TestAccepted_IsValid(t *testing.T) {
	accepted, refused, mutations := 0, 0, 400
	if testing.Short() {
		mutations = 80
	}
	for _, folder := range []string{"valid", "invalid"} {
		for name, raw := range records.All(t, folder) {
			kind, _, _ := strings.Cut(name, "-")
			if acceptors()[kind] == nil {
				continue
			}
			random := rand.New(rand.NewPCG(1, uint64(len(raw))))
			for i := range mutations {
				mutated := raw
				if i > 0 {
					mutated = mutate(t, random, raw)
				}
				if acceptors()[kind].accepts(mutated) {
					accepted++
				} else {
					refused++
					// Objects that only the validator accepts are read both ways as well.
					if _, err := parseKind(kind, mutated); err != nil {
						continue
					}
				}
				if err := sameValue(kind, mutated); err != nil {
					t.Fatalf("%s, mutation %d: %v\n%s", name, i, err, mutated)
				}
			}
		}
	}
	// The test has an effect only with enough of both.
	if least := mutations * 5 / 2; accepted < least || refused < least {
		t.Errorf("%d accepted and %d refused: the mutations miss one side", accepted, refused)
	}
}

func sameValue(kind string, raw []byte) error {
	quick, refused := parseKind(kind, raw)
	var slow any
	var err error
	switch kind {
	case "attempt":
		slow, err = parseSlowly[Attempt](kind, raw)
	case "wave":
		slow, err = parseSlowly[Wave](kind, raw)
	default:
		slow, err = parseSlowly[Result](kind, raw)
	}
	if wave, ok := slow.(*Wave); ok && err == nil {
		err = wave.check()
	}
	// The schema allows numbers outside of Go's types, such as 1e400, and both ways of reading reject them.
	if refused != nil || err != nil {
		if err == nil || refused == nil || strings.Contains(err.Error(), "schema") {
			return fmt.Errorf("accepted, but: %w; %w", refused, err)
		}
		return nil
	}
	if difference := cmp.Diff(slow, quick, cmp.AllowUnexported(Phase{})); difference != "" {
		return fmt.Errorf("the two ways of reading differ: %s", difference)
	}
	return nil
}

// mutate changes a document in one place: it removes, adds or retypes a member, changes a number or a string, or changes a byte.
func mutate(t *testing.T, random *rand.Rand, raw []byte) []byte {
	t.Helper()
	if random.IntN(4) == 0 {
		out := bytes.Clone(raw)
		out[random.IntN(len(out))] = `"{}[],:0-.eE\n\u`[random.IntN(15)]
		return out
	}
	var document any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&document) != nil {
		return raw // One of the invalid fixtures is not JSON.
	}
	values := []any{
		nil, true, false, "", "x", "é", strings.Repeat("é", 64), strings.Repeat("a", 5000), 0, -1, 1, 1.5, json.Number("1.0"),
		json.Number("1e3"),
		json.Number("1e400"), json.Number("-0"), []any{}, []any{1}, []any{"a"}, map[string]any{},
		map[string]any{"unit": "s", "value": 1, "samples": []any{1}},
		"2026-11-21T08:00:00Z", "2026-02-30T08:00:00Z", "2026-11-21T08:00:00.5+01:00", "2026-11-21t08:00:00z", "2026-11-21T24:00:00Z", "2026-11-21T08:00:60Z",
		strings.Repeat("0", 64), "sha256:" + strings.Repeat("0", 64), "Succeeded", "w000-b0000", "a\"b", "a\\b", "\u0000",
	}
	var objects []map[string]any
	var arrays [][]any
	var walk func(any)
	walk = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			objects = append(objects, value)
			for _, one := range value {
				walk(one)
			}
		case []any:
			if len(value) > 0 {
				arrays = append(arrays, value)
			}
			for _, one := range value {
				walk(one)
			}
		}
	}
	walk(document)
	value := values[random.IntN(len(values))]
	if len(arrays) > 0 && random.IntN(4) == 0 {
		array := arrays[random.IntN(len(arrays))]
		array[random.IntN(len(array))] = value
	} else if len(objects) > 0 {
		object := objects[random.IntN(len(objects))]
		names := []string{"unknown", "Schema", "a b", "unit", "value", "samples", "x"}
		for name := range object {
			names = append(names, name)
		}
		name := names[random.IntN(len(names))]
		if random.IntN(3) == 0 {
			delete(object, name)
		} else {
			object[name] = value
		}
	}
	out, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A duplicate member is rejected by both ways of reading.
func TestAcceptor_DuplicateMembersAreRejected(t *testing.T) {
	raw := records.All(t, "valid")
	for name, document := range raw {
		kind, _, _ := strings.Cut(name, "-")
		twice := append([]byte(`{"schema": "x",`), bytes.TrimLeft(bytes.TrimLeft(document, " \n"), "{")...)
		if acceptors()[kind].accepts(twice) {
			t.Errorf("%s with two schemas is accepted", name)
		}
	}
}
