// Package storeusers gives everybody who reaches the bundled object store a user of its own, which may do there what it has to do
// and nothing else.
package storeusers

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
)

// Names of users. A namespace has two: who measures and analyses there is run.NAMESPACE, who only reads is read.NAMESPACE.
const (
	Operator = "operator"
	Metrics  = "metrics"
	runs     = "run"
	readers  = "read"
)

// prefix is how the access keys and the policies of these users begin in the store: whatever else is there is not ours.
const prefix = "assay."

var ofNamespace = regexp.MustCompile(`^(` + runs + `|` + readers + `)\.([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$`)

// AccessKey is the access key of a user, and the name of its policy.
func AccessKey(name string) string { return prefix + name }

type statement struct {
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string][]string `json:",omitempty"`
}

// written is what the pods of a run write in its ledger. Every name ends in what kind of a file it is, so that none is that of a folder,
// such as a block's: MinIO lists nothing of what is below the name of an object, and who may write that name could hide what was measured.
var written = []string{
	"attempts/*.json", "started/*.json", "problems/*.json",
	"analysis/*.json", "analysis/*.md", "analysis/*.html", "analysis/*.csv", "analysis/*.parquet", "analysis/*.sha256",
}

// fileOfMinIO is the file that MinIO has of an object, in a folder of the object's name. Who could make a folder of it would keep everybody
// from writing the object, such as the operator that a lease has ended, without which nobody else gets the node.
const fileOfMinIO = "xl.meta"

// Policy is what a user may do in a bucket with ledgers below a prefix. It is a list of what is allowed: nobody may delete or make keys,
// the operator alone writes what is planned, who has a node and what runs of schedules add up to, and it writes nothing that was measured.
func Policy(bucket, under, name string) ([]byte, error) {
	below := func(folder string, keys ...string) []string {
		out := make([]string, 0, len(keys))
		for _, key := range keys {
			out = append(out, path.Join(folder, key))
		}
		return out
	}
	resource := func(keys ...string) []string { return below("arn:aws:s3:::"+path.Join(bucket, under), keys...) }
	allow := func(resources []string, actions ...string) statement {
		return statement{Effect: "Allow", Action: actions, Resource: resources}
	}
	var statements []statement
	match := ofNamespace.FindStringSubmatch(name)
	switch {
	case name == Operator:
		statements = []statement{
			allow([]string{"arn:aws:s3:::" + bucket}, "s3:ListBucket", "s3:ListBucketVersions"),
			allow(resource("runs/*", "history/*"), "s3:GetObject"),
			allow(resource("runs/*/experiment.json", "runs/*/history.json", "runs/*/confirm.json", "runs/*/waves/*", "runs/*/leases/*",
				"runs/assay-write-probe", "history/*"), "s3:PutObject"),
		}
	case name == Metrics:
		statements = []statement{allow([]string{"arn:aws:s3:::*"}, "admin:Prometheus")}
	case match != nil:
		own := []string{path.Join("runs", match[2]) + "/*", path.Join("argo", match[2]) + "/*", path.Join("history", match[2]) + "/*"}
		list := allow([]string{"arn:aws:s3:::" + bucket}, "s3:ListBucket", "s3:ListBucketVersions")
		list.Condition = map[string]map[string][]string{"StringLike": {"s3:prefix": below(under, own...)}}
		statements = []statement{list, allow(resource(own...), "s3:GetObject", "s3:GetObjectVersion")}
		if match[1] == runs {
			of := own[0]
			statements = append(statements, allow(resource(below(of, written...)...), "s3:PutObject"),
				// A star stands for any number of folders: where the operator alone writes, nobody fills what it lists.
				statement{Effect: "Deny", Action: []string{"s3:PutObject"},
					Resource: resource(of+"/"+fileOfMinIO+"/*", of+"/leases/*", of+"/waves/*")},
				// What other workflows of the namespace keep, with Argo's own artifact repository. Large ones are written in parts.
				allow(resource(own[1]), "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"))
		}
	default:
		return nil, fmt.Errorf("invalid user %q: allowed are %s, %s, %s.NAMESPACE and %s.NAMESPACE", name, Operator, Metrics, runs, readers)
	}
	// MinIO lets every user change its own key and make accounts with rights like its own, unless it is told not to.
	statements = append(statements,
		statement{Effect: "Deny", Action: []string{"admin:CreateUser", "admin:CreateServiceAccount"}, Resource: []string{"arn:aws:s3:::*"}})
	return json.Marshal(struct {
		Version   string
		Statement []statement
	}{"2012-10-17", statements})
}
