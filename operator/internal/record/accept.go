package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Validation against the schemas takes most of the time of reading a ledger, and nearly every object is valid. So the schemas are also
// compiled into an acceptor, which can only accept. Objects that it does not accept go to the validator, which reports the errors. An
// acceptor that accepts too little costs time only; TestAccepted_IsValid tests that it never accepts too much.

// acceptor is a compiled schema.
type acceptor struct {
	// types are the allowed kinds of a value's first token; empty allows all.
	types map[jsontext.Kind]bool
	// integer requires whole numbers.
	integer bool
	// texts are the allowed strings; nil allows all.
	texts                map[string]bool
	minLength, maxLength int
	pattern              *regexp.Regexp
	dateTime             bool
	minimum, above       *float64
	maximum              *float64

	items              *acceptor
	minItems, maxItems int

	members          map[string]member
	required         int
	others           *acceptor
	closed           bool
	names            *acceptor
	minSize, maxSize int
	// oneOf holds names of which exactly one must be present.
	oneOf map[string]bool
}

// member is a known member of an object.
type member struct {
	of       *acceptor
	required bool
}

const unlimited = int(^uint(0) >> 1)

// acceptCompiler compiles schemas by their addresses, so that references may form cycles.
type acceptCompiler struct {
	documents map[string]any
	done      map[string]*acceptor
}

// at compiles the schema at a pointer of a document, such as "attempt.schema.json#/$defs/noise".
func (c *acceptCompiler) at(file, pointer string) (*acceptor, error) {
	address := file + "#" + pointer
	if known, ok := c.done[address]; ok {
		return known, nil
	}
	node := c.documents[file]
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if step == "" {
			continue
		}
		object, ok := node.(map[string]any)
		if !ok || object[step] == nil {
			return nil, fmt.Errorf("no schema at %s", address)
		}
		node = object[step]
	}
	schema, ok := node.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the schema at %s is not an object", address)
	}
	out := &acceptor{maxLength: unlimited, maxItems: unlimited, maxSize: unlimited}
	c.done[address] = out
	return out, c.fill(out, schema, file, pointer)
}

// fill compiles the keywords of a schema. An unknown keyword is an error, because ignoring it would accept too much.
func (c *acceptCompiler) fill(out *acceptor, schema map[string]any, file, pointer string) error {
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		if err := c.keyword(out, schema, keyword, file, pointer); err != nil {
			return fmt.Errorf("%s at %s#%s: %w", keyword, file, pointer, err)
		}
	}
	return nil
}

func (c *acceptCompiler) keyword(out *acceptor, schema map[string]any, keyword, file, pointer string) (err error) {
	value := schema[keyword]
	switch keyword {
	case "$schema", "$id", "$defs", "title", "description", "enumDescriptions", "contentEncoding":
	case "$ref":
		return c.reference(out, schema, file, value.(string))
	case "type":
		out.allow(value)
	case "const":
		out.texts, err = textsOf([]any{value})
	case "enum":
		out.texts, err = textsOf(value.([]any))
	case "minLength":
		out.minLength, err = whole(value)
	case "maxLength":
		out.maxLength, err = whole(value)
	case "pattern":
		out.pattern, err = regexp.Compile(value.(string))
	case "format":
		if value != "date-time" {
			return fmt.Errorf("unknown format %v", value)
		}
		out.dateTime = true
	case "minimum":
		out.minimum, err = real(value)
	case "exclusiveMinimum":
		out.above, err = real(value)
	case "maximum":
		out.maximum, err = real(value)
	case "items":
		out.items, err = c.at(file, pointer+"/items")
	case "minItems":
		out.minItems, err = whole(value)
	case "maxItems":
		out.maxItems, err = whole(value)
	case "properties":
		return c.properties(out, schema, file, pointer)
	case "required":
		if schema["properties"] == nil {
			return fmt.Errorf("it must not occur without properties")
		}
	case "additionalProperties":
		if value == false {
			out.closed = true
			return nil
		}
		out.others, err = c.at(file, pointer+"/additionalProperties")
	case "propertyNames":
		out.names, err = c.at(file, pointer+"/propertyNames")
	case "minProperties":
		out.minSize, err = whole(value)
	case "maxProperties":
		out.maxSize, err = whole(value)
	case "oneOf":
		return out.exactlyOne(value.([]any))
	default:
		return fmt.Errorf("unknown keyword")
	}
	return err
}

func (c *acceptCompiler) reference(out *acceptor, schema map[string]any, file, reference string) error {
	for keyword := range schema {
		if keyword != "$ref" && keyword != "description" {
			return fmt.Errorf("beside %s", keyword)
		}
	}
	to, pointer, _ := strings.Cut(reference, "#")
	target, err := c.at(cmp.Or(to, file), pointer)
	if err == nil {
		// A schema that refers to one still being compiled would copy an incomplete acceptor.
		if target.maxLength == 0 {
			return fmt.Errorf("%s is a reference cycle", reference)
		}
		*out = *target
	}
	return err
}

func (c *acceptCompiler) properties(out *acceptor, schema map[string]any, file, pointer string) error {
	out.members = map[string]member{}
	for name := range schema["properties"].(map[string]any) {
		of, err := c.at(file, pointer+"/properties/"+name)
		if err != nil {
			return err
		}
		out.members[name] = member{of: of}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		m, ok := out.members[name.(string)]
		if !ok {
			return fmt.Errorf("required %v is not among them", name)
		}
		m.required = true
		out.members[name.(string)] = m
	}
	out.required = len(required)
	return nil
}

// kindsOf are the kinds of the first token of a value, by its type in a schema.
var kindsOf = map[string]string{"string": `"`, "number": "0", "integer": "0", "boolean": "tf", "object": "{", "array": "["}

func (a *acceptor) allow(types any) {
	list, ok := types.([]any)
	if !ok {
		list = []any{types}
	}
	a.types = map[jsontext.Kind]bool{}
	for _, name := range list {
		a.integer = a.integer || name == "integer"
		for _, kind := range kindsOf[name.(string)] {
			a.types[jsontext.Kind(kind)] = true
		}
	}
}

func (a *acceptor) exactlyOne(alternatives []any) error {
	a.oneOf = map[string]bool{}
	for _, alternative := range alternatives {
		schema, _ := alternative.(map[string]any)
		required, _ := schema["required"].([]any)
		if len(schema) != 1 || len(required) != 1 {
			return fmt.Errorf("an alternative has more than one required member")
		}
		a.oneOf[required[0].(string)] = true
	}
	return nil
}

func textsOf(values []any) (map[string]bool, error) {
	out := map[string]bool{}
	for _, value := range values {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("%v is not a string", value)
		}
		out[text] = true
	}
	return out, nil
}

func real(value any) (*float64, error) {
	number, err := strconv.ParseFloat(fmt.Sprint(value), 64)
	return &number, err
}

func whole(value any) (int, error) { return strconv.Atoi(fmt.Sprint(value)) }

// decoders are reused, because a ledger has a hundred thousand objects.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// accepts reports whether raw is one JSON value that the schema certainly allows.
func (a *acceptor) accepts(raw []byte) bool {
	decoder := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(decoder)
	decoder.Reset(bytes.NewBuffer(raw))
	if !a.next(decoder) {
		return false
	}
	_, err := decoder.ReadToken()
	return errors.Is(err, io.EOF)
}

func (a *acceptor) next(decoder *jsontext.Decoder) bool {
	kind := decoder.PeekKind()
	if len(a.types) > 0 && !a.types[kind] || a.texts != nil && kind != '"' {
		return false
	}
	switch kind {
	case '{':
		return a.object(decoder)
	case '[':
		return a.array(decoder)
	}
	raw, err := decoder.ReadValue()
	switch {
	case err != nil:
		return false
	case kind == '"':
		return a.text(raw)
	case kind == '0':
		return a.number(raw)
	default:
		return kind == 't' || kind == 'f'
	}
}

// text accepts only strings without escapes, because others are rare.
func (a *acceptor) text(raw []byte) bool {
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 && (a.texts != nil || a.pattern != nil || a.dateTime || a.minLength > 1 || len(text) > a.maxLength) {
		return false
	}
	switch {
	case a.texts != nil && !a.texts[string(text)],
		len(text) < a.minLength || a.minLength > 1 && utf8.RuneCount(text) < a.minLength,
		len(text) > a.maxLength && utf8.RuneCount(text) > a.maxLength,
		a.pattern != nil && !a.pattern.Match(text):
		return false
	case a.dateTime:
		_, err := time.Parse(time.RFC3339Nano, string(text))
		return err == nil
	}
	return true
}

func (a *acceptor) number(raw []byte) bool {
	if a.integer && bytes.ContainsAny(raw, ".eE") {
		return false
	}
	if a.minimum == nil && a.above == nil && a.maximum == nil {
		return true
	}
	number, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && (a.minimum == nil || number >= *a.minimum) && (a.above == nil || number > *a.above) &&
		(a.maximum == nil || number <= *a.maximum)
}

func (a *acceptor) array(decoder *jsontext.Decoder) bool {
	if _, err := decoder.ReadToken(); err != nil {
		return false
	}
	count := 0
	for ; decoder.PeekKind() != ']'; count++ {
		if a.items == nil || !a.items.next(decoder) {
			return false
		}
	}
	_, err := decoder.ReadToken()
	return err == nil && count >= a.minItems && count <= a.maxItems
}

func (a *acceptor) object(decoder *jsontext.Decoder) bool {
	if _, err := decoder.ReadToken(); err != nil {
		return false
	}
	size, required, oneOf := 0, 0, 0
	for ; decoder.PeekKind() != '}'; size++ {
		raw, err := decoder.ReadValue()
		if err != nil || raw.Kind() != '"' || bytes.IndexByte(raw, '\\') >= 0 {
			return false
		}
		name := raw[1 : len(raw)-1]
		if a.names != nil && !a.names.text(raw) {
			return false
		}
		if a.oneOf[string(name)] {
			oneOf++
		}
		m, known := a.members[string(name)]
		if m.required {
			required++
		}
		switch {
		case known:
		case a.closed || a.others == nil:
			return false
		default:
			m.of = a.others
		}
		if !m.of.next(decoder) {
			return false
		}
	}
	_, err := decoder.ReadToken()
	return err == nil && required == a.required && size >= a.minSize && size <= a.maxSize && (a.oneOf == nil || oneOf == 1)
}

// acceptors compiles the schemas, by kind, once.
var acceptors = sync.OnceValue(func() map[string]*acceptor {
	c := &acceptCompiler{documents: map[string]any{}, done: map[string]*acceptor{}}
	for _, name := range kinds {
		c.documents[name+".schema.json"] = readSchema(name)
	}
	out := map[string]*acceptor{}
	for _, name := range kinds {
		compiled, err := c.at(name+".schema.json", "")
		if err != nil {
			panic(err) // The files are embedded, and a test compiles them.
		}
		out[name] = compiled
	}
	return out
})
