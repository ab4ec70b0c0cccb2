package lease

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Annotations of a node's Lease object.
const (
	// NodeAnnotation is the node's name; the object's own name may be a shortened one.
	NodeAnnotation = "assay.dev/node"
	// WholeAnnotation is "true" while the holder has the node exclusively.
	WholeAnnotation = "assay.dev/whole-node"
	// DrainingAnnotation is "true" once no block may start under the holder's token.
	DrainingAnnotation = "assay.dev/draining"
	// LastAnnotation is the newest end of a token.
	LastAnnotation = "assay.dev/last-end"
)

const maxNameBytes = 253

// Name of a node's Lease object.
func Name(node string) string {
	name := "assay-node-" + node
	if len(name) <= maxNameBytes {
		return name
	}
	sum := sha256.Sum256([]byte(node))
	digest := fmt.Sprintf("%x", sum[:8])
	return name[:maxNameBytes-len(digest)-1] + "-" + digest
}

// last is the JSON form of an End in the annotation.
type last struct {
	Holder string    `json:"holder"`
	Token  int64     `json:"token"`
	At     time.Time `json:"at"`
	Why    string    `json:"why"`
}

// FromObject parses a Lease object.
func FromObject(object *coordinationv1.Lease) (Lease, error) {
	fail := func(field string, err error) (Lease, error) {
		return Lease{}, fmt.Errorf("Lease %s/%s: %s: %w; nothing else may write it: delete it and it is made again", object.Namespace,
			object.Name, field, err)
	}
	out := Lease{
		Node: object.Annotations[NodeAnnotation], Whole: object.Annotations[WholeAnnotation] == "true",
		Draining: object.Annotations[DrainingAnnotation] == "true",
		Token:    int64(ptr.Deref(object.Spec.LeaseTransitions, 0)),
		Duration: time.Duration(ptr.Deref(object.Spec.LeaseDurationSeconds, 0)) * time.Second,
		Acquired: ptr.Deref(object.Spec.AcquireTime, metav1.MicroTime{}).UTC(),
		Renewed:  ptr.Deref(object.Spec.RenewTime, metav1.MicroTime{}).UTC(),
	}
	if Name(out.Node) != object.Name {
		return fail("metadata.annotations", fmt.Errorf("%s is %q", NodeAnnotation, out.Node))
	}
	var err error
	if out.Holder, err = ParseHolder(ptr.Deref(object.Spec.HolderIdentity, "")); err != nil {
		return fail("spec", err)
	}
	if text := object.Annotations[LastAnnotation]; text != "" {
		var ended last
		if err := json.Unmarshal([]byte(text), &ended); err != nil {
			return fail("metadata.annotations: "+LastAnnotation, err)
		}
		holder, err := ParseHolder(ended.Holder)
		if err != nil {
			return fail("metadata.annotations: "+LastAnnotation, err)
		}
		out.Last = &End{Node: out.Node, Holder: holder, Token: ended.Token, At: ended.At.UTC(), Why: ended.Why}
	}
	return out, nil
}

// Write sets the fields of a Lease object that a Lease has. The others stay, in particular the resource version.
func (l Lease) Write(object *coordinationv1.Lease) error {
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, NodeAnnotation, l.Node)
	for annotation, set := range map[string]bool{WholeAnnotation: l.Whole, DrainingAnnotation: l.Draining} {
		delete(object.Annotations, annotation)
		if set {
			object.Annotations[annotation] = "true"
		}
	}
	if l.Last != nil {
		raw, err := json.Marshal(last{l.Last.Holder.String(), l.Last.Token, l.Last.At.UTC(), l.Last.Why})
		if err != nil {
			return err
		}
		object.Annotations[LastAnnotation] = string(raw)
	}
	object.Spec = coordinationv1.LeaseSpec{
		LeaseDurationSeconds: ptr.To(int32(l.Duration / time.Second)),
		LeaseTransitions:     ptr.To(int32(l.Token)),
		AcquireTime:          ptr.To(metav1.NewMicroTime(l.Acquired)),
		RenewTime:            ptr.To(metav1.NewMicroTime(l.Renewed)),
	}
	if l.Held() {
		object.Spec.HolderIdentity = ptr.To(l.Holder.String())
	}
	return nil
}
