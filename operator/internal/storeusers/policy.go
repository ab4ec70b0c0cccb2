// Package storeusers gives each client of the bundled object store a separate user with least privileges.
package storeusers

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
)

// Names of users. A namespace has two: run.NAMESPACE for measuring and analysis, and read.NAMESPACE for reading.
const (
	Operator = "operator"
	Metrics  = "metrics"
	runs     = "run"
	readers  = "read"
)

// prefix begins the access keys and the policies of these users. Others in the store are not managed here.
const prefix = "assay."

var ofNamespace = regexp.MustCompile(`^(` + runs + `|` + readers + `)\.([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$`)

// AccessKey returns the access key of a user, which is also the name of its policy.
func AccessKey(name string) string { return prefix + name }

type statement struct {
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string][]string `json:",omitempty"`
}

// written lists the object names that the pods of a run write in its ledger. Each ends in a file extension, so that none equals a folder
// such as a block's. MinIO lists no objects below the name of an existing object, so a client that may write a folder's name could hide
// attempts.
var written = []string{
	"attempts/*.json", "started/*.json", "problems/*.json",
	"analysis/*.json", "analysis/*.md", "analysis/*.html", "analysis/*.csv", "analysis/*.parquet", "analysis/*.sha256",
}

// fileOfMinIO is the file in which MinIO stores an object, in a folder of the object's name. A client that can create a folder of this name
// would block writes of the object, such as the end of a lease, without which no other run gets the node.
const fileOfMinIO = "xl.meta"

// Policy returns the policy document of a user for a bucket with ledgers below a prefix. It allows only listed actions: no user may delete
// objects or create keys, only the operator writes plans, leases and histories of schedules, and the operator writes no attempts.
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
				// A star matches any number of folders, so writes of others into the operator's folders are denied.
				statement{Effect: "Deny", Action: []string{"s3:PutObject"},
					Resource: resource(of+"/"+fileOfMinIO+"/*", of+"/leases/*", of+"/waves/*")},
				// Artifacts of other workflows of the namespace, in Argo's artifact repository. Large ones are written in parts.
				allow(resource(own[1]), "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"))
		}
	default:
		return nil, fmt.Errorf("invalid user %q: allowed are %s, %s, %s.NAMESPACE and %s.NAMESPACE", name, Operator, Metrics, runs, readers)
	}
	// MinIO lets every user change its key and create accounts with its rights unless that is denied.
	statements = append(statements,
		statement{Effect: "Deny", Action: []string{"admin:CreateUser", "admin:CreateServiceAccount"}, Resource: []string{"arn:aws:s3:::*"}})
	return json.Marshal(struct {
		Version   string
		Statement []statement
	}{"2012-10-17", statements})
}
