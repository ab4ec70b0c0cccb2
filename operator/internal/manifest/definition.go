package manifest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/config/crd"
	"assay.dev/assay/operator/internal/suggest"
)

// definition checks objects of one kind by its CustomResourceDefinition, with the libraries of the API server.
type definition struct {
	schema *structural.Structural
	// read is the schema with metadata, which the CRD omits because the API server adds it.
	read      *structural.Structural
	validator schemavalidation.SchemaValidator
	rules     *cel.Validator
}

var (
	textSchema  = structural.Structural{Generic: structural.Generic{Type: "string"}}
	textsSchema = structural.Structural{
		Generic: structural.Generic{Type: "object"}, AdditionalProperties: &structural.StructuralOrBool{Structural: &textSchema},
	}
	metadataSchema = structural.Structural{Generic: structural.Generic{Type: "object"}, Properties: map[string]structural.Structural{
		"name": textSchema, "generateName": textSchema, "namespace": textSchema, "labels": textsSchema, "annotations": textsSchema,
	}}
)

// definitions are compiled on first use, because most commands read no file.
var definitions = map[string]func() *definition{
	"BenchmarkRun":      sync.OnceValue(func() *definition { return define("assay.dev_benchmarkruns.yaml") }),
	"BenchmarkTemplate": sync.OnceValue(func() *definition { return define("assay.dev_benchmarktemplates.yaml") }),
}

// define compiles an embedded definition. It panics on an error, because the file is a part of the program.
func define(file string) *definition {
	must := func(err error) {
		if err != nil {
			panic(fmt.Errorf("%s: %w", file, err))
		}
	}
	raw, err := crd.Files.ReadFile(file)
	must(err)
	var custom apiextensionsv1.CustomResourceDefinition
	must(yaml.UnmarshalStrict(raw, &custom))
	served := slices.IndexFunc(custom.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	var written apiextensions.CustomResourceValidation
	convert := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation
	must(convert(custom.Spec.Versions[served].Schema, &written, nil))
	out := &definition{}
	out.schema, err = structural.NewStructural(written.OpenAPIV3Schema)
	must(err)
	must(defaulting.PruneDefaults(out.schema))
	out.validator, _, err = schemavalidation.NewSchemaValidator(written.OpenAPIV3Schema)
	must(err)
	withMetadata := *out.schema
	withMetadata.Properties = maps.Clone(out.schema.Properties)
	withMetadata.Properties["metadata"] = metadataSchema
	out.read = &withMetadata
	out.rules = cel.NewValidator(out.schema, true, celconfig.PerCallLimit)
	return out
}

// standIn replaces the fields that only the API server sets: a name after metadata.generateName, and a namespace.
const standIn = "xxxxx"

// check reports the problems that the API server would report, in its order: unknown fields, metadata, schema and lists and, if these are
// valid, the rules. It modifies the object as the API server does.
func (d *definition) check(object map[string]any) []Problem {
	metadata, ok, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return []Problem{metadataProblem(err)}
	}
	track := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown = append(unknown, pruning.PruneWithOptions(object, d.schema, true, track)...)
	var out []Problem
	for _, path := range unknown {
		out = append(out, Problem{Field: path, Message: d.unknownField(path), key: true})
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.schema)
	defaulting.Default(object, d.schema)
	delete(object, "status") // The API server ignores the status on creation.
	if !ok {
		metadata = &metav1.ObjectMeta{}
	}
	metadata.Namespace = cmp.Or(metadata.Namespace, standIn)
	metadata.Name = cmp.Or(metadata.Name, metadata.GenerateName+standIn)
	if err := objectmeta.SetObjectMeta(object, metadata); err != nil {
		return append(out, Problem{Field: "metadata", Message: err.Error()})
	}
	whole := &unstructured.Unstructured{Object: object}
	errs := metavalidation.ValidateObjectMetaAccessor(whole, true, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, object, d.validator)...)
	errs = append(errs, objectmeta.Validate(nil, object, d.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.schema, object)...)
	if !slices.ContainsFunc(errs, hidesRules) {
		broken, _ := d.rules.Validate(context.Background(), nil, d.schema, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	for _, err := range withFields(errs) {
		problem := Problem{Field: err.Field, Message: d.describe(err, valueAt(object, split(err.Field)))}
		if !slices.Contains(out, problem) {
			out = append(out, problem)
		}
	}
	return out
}

// noField is the name that the validator of schemas gives to the field of a summary, such as of allOf. The errors that it summarizes have
// fields.
const noField = "<nil>"

// withFields removes summaries. If there is nothing else, a summary gets the field that its text names.
func withFields(errs field.ErrorList) field.ErrorList {
	var out, summaries field.ErrorList
	for _, err := range errs {
		if err.Field == noField {
			summaries = append(summaries, err)
		} else {
			out = append(out, err)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, err := range summaries {
		named := *err
		_, quoted, _ := strings.Cut(err.Detail, `"`)
		named.Field, _, _ = strings.Cut(quoted, `"`)
		out = append(out, &named)
	}
	return out
}

// valueAt returns the text at a path of an object; "" for anything else.
func valueAt(object any, steps []string) string {
	for _, step := range steps {
		switch of := object.(type) {
		case map[string]any:
			object = of[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(of) {
				return ""
			}
			object = of[i]
		default:
			return ""
		}
	}
	text, _ := object.(string)
	return text
}

// hidesRules reports whether the API server skips the rules because of an error.
func hidesRules(err *field.Error) bool {
	return slices.Contains([]field.ErrorType{field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
		field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid}, err.Type)
}

func metadataProblem(err error) Problem {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return Problem{
			Field:   strings.TrimSuffix("metadata."+wrong.Field, "."),
			Message: fmt.Sprintf("invalid type: found %s, allowed is %s", typeName(wrong.Value), typeName(wrong.Type.Kind().String())),
		}
	}
	return Problem{Field: "metadata", Message: err.Error()}
}

// describe explains the invalid value, the allowed ones and a likely correction. Found is the text at the field, or "".
func (d *definition) describe(err *field.Error, found string) string {
	switch err.Type {
	case field.ErrorTypeNotSupported:
		return fmt.Sprintf("invalid value %s: %s", literal(err.BadValue), suggest.Allowed(fmt.Sprint(err.BadValue), d.allowed(err.Field)))
	case field.ErrorTypeRequired:
		message := "is missing"
		if allowed := d.allowed(err.Field); len(allowed) > 0 {
			message += ": allowed are " + strings.Join(allowed, ", ")
		}
		return message
	case field.ErrorTypeTypeInvalid:
		if schema := follow(d.schema, split(err.Field)); schema != nil && schema.Type != "" {
			// The detail contains the type that was found; BadValue is empty.
			_, kind, _ := strings.Cut(err.Detail, ": ")
			return fmt.Sprintf("invalid type: found %s, allowed is %s", typeName(strings.Trim(kind, `"`)), typeName(schema.Type))
		}
	case field.ErrorTypeDuplicate:
		return fmt.Sprintf("duplicate %s: remove one, or rename it", literal(err.BadValue))
	}
	// The validator of schemas repeats the path.
	detail := err.Detail
	if _, rest, cut := strings.Cut(detail, " in body "); cut {
		detail = rest
	}
	if strings.Contains(detail, "should match") && strings.Contains(detail, "KMGTPE") {
		return notQuantity(found)
	}
	// A rule whose evaluation fails, because a text is no duration, states the failed conversion before its message.
	if _, message, failed := strings.Cut(detail, " evaluating rule: "); failed {
		return strings.TrimPrefix(fmt.Sprintf("%q: %s", found, message), `"": `)
	}
	if text, scalar := err.BadValue.(string); scalar && text != "" && text != "object" && text != "array" && text != "string" {
		return fmt.Sprintf("%q: %s", text, detail)
	}
	if number, scalar := err.BadValue.(int64); scalar {
		return fmt.Sprintf("%d: %s", number, detail)
	}
	return cmp.Or(detail, err.ErrorBody())
}

// sizeUnit matches a number with a unit of bytes that quantities do not have.
var sizeUnit = regexp.MustCompile(`^([0-9.]+) *([kKmMgGtTpPeE])[iI]?[bB]?$`)

// notQuantity explains a text that is no quantity of Kubernetes.
func notQuantity(text string) string {
	message := fmt.Sprintf("invalid quantity %q: write a number with an optional suffix, such as 512Mi, 2G or 500m", text)
	if size := sizeUnit.FindStringSubmatch(text); size != nil {
		prefix := strings.ToUpper(size[2])
		decimal := strings.Replace(prefix, "K", "k", 1)
		message = fmt.Sprintf("invalid quantity %q: write %s%s (powers of 1000) or %s%si (powers of 1024)", text, size[1], decimal, size[1],
			prefix)
	}
	return message
}

func literal(value any) string {
	if text, ok := value.(string); ok {
		return strconv.Quote(text)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

// typeNames are the YAML terms for the types of a schema and the kinds of Go's types; other names are used unchanged.
var typeNames = map[string]string{
	"object": "a mapping", "map": "a mapping", "struct": "a mapping", "array": "a list", "slice": "a list", "integer": "an integer",
	"null": "nothing",
}

func typeName(name string) string { return cmp.Or(typeNames[name], "a "+name) }

// allowed returns the enumerated values of a field.
func (d *definition) allowed(path string) []string {
	schema := follow(d.schema, split(path))
	if schema == nil || schema.ValueValidation == nil {
		return nil
	}
	var out []string
	for _, value := range schema.ValueValidation.Enum {
		out = append(out, fmt.Sprint(value.Object))
	}
	return out
}

// unknownField describes an unknown field and lists the known ones.
func (d *definition) unknownField(path string) string {
	steps := split(path)
	last := steps[len(steps)-1]
	var known []string
	if schema := follow(d.schema, steps[:len(steps)-1]); schema != nil {
		known = slices.Sorted(maps.Keys(schema.Properties))
	}
	if len(known) == 0 {
		return "unknown field"
	}
	return "unknown field: " + suggest.Allowed(last, known)
}

// follow descends a schema along steps. It returns nil where the schema has no definition.
func follow(schema *structural.Structural, steps []string) *structural.Structural {
	for _, step := range steps {
		schema = below(schema, step)
	}
	return schema
}

// below returns the schema of a key or an item.
func below(schema *structural.Structural, step string) *structural.Structural {
	if schema == nil {
		return nil
	}
	if property, ok := schema.Properties[step]; ok {
		return &property
	}
	if schema.Items != nil {
		return schema.Items
	}
	if schema.AdditionalProperties != nil {
		return schema.AdditionalProperties.Structural
	}
	return nil
}
