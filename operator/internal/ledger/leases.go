package ledger

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// LeasesPrefix holds two objects for every lease that the run had: that it was taken, and that it ended.
const LeasesPrefix = "leases/"

// No name of a node has a slash. Whoever may write below attempts/, also where that is a part of a key, is not to say who had a node.
var (
	leaseTakenKey = regexp.MustCompile(`^leases/([^/]+)-([0-9]+)\.json$`)
	leaseEndKey   = regexp.MustCompile(`^leases/([^/]+)-([0-9]+)\.end\.json$`)
)

// LeaseTakenKey is the record of a lease.
func LeaseTakenKey(lease record.Lease) string {
	return fmt.Sprintf("leases/%s-%d.json", lease.Node, lease.Token)
}

// LeaseEndKey is the record of its end.
func LeaseEndKey(lease record.Lease) string {
	return fmt.Sprintf("leases/%s-%d.end.json", lease.Node, lease.Token)
}

// LastToken is the highest token that the run ever had for a node; 0 when it had none.
func LastToken(ctx context.Context, s store.Store, node string) (last int64, err error) {
	// A page at a time: whoever writes in the ledger may write any number of names.
	err = store.EachKey(ctx, s, LeasesPrefix, func(key string) {
		match := leaseTakenKey.FindStringSubmatch(key)
		if match == nil || match[1] != node {
			return
		}
		// A Lease object counts with 32 bits (leaseTransitions), so that no run had a token after which none could follow.
		if token, err := strconv.ParseInt(match[2], 10, 32); err == nil && token < math.MaxInt32 {
			last = max(last, token)
		}
	})
	return last, err
}

// ReadLeases reads what the ledger says of the run's leases.
func ReadLeases(ctx context.Context, store store.Store) (record.Leases, []record.Problem, error) {
	keys, err := store.List(ctx, LeasesPrefix)
	if err != nil {
		return record.Leases{}, nil, err
	}
	taken, problems, err := readAll(ctx, store, matching(keys, leaseTakenKey), func(key string, raw []byte) (*record.LeaseTaken, error) {
		parsed, err := record.ParseLeaseTaken(raw)
		if err == nil && LeaseTakenKey(parsed.Lease) != key {
			err = fmt.Errorf("it is the lease of node %s with token %d", parsed.Node, parsed.Token)
		}
		return parsed, err
	})
	if err != nil {
		return record.Leases{}, nil, err
	}
	ends, more, err := readAll(ctx, store, matching(keys, leaseEndKey), func(key string, raw []byte) (*record.LeaseEnd, error) {
		parsed, err := record.ParseLeaseEnd(raw)
		if err == nil && LeaseEndKey(parsed.Lease) != key {
			err = fmt.Errorf("it is the end of the lease of node %s with token %d", parsed.Node, parsed.Token)
		}
		return parsed, err
	})
	return record.Leases{Known: len(taken)+len(problems) > 0, Taken: taken, Ends: ends}, append(problems, more...), err
}
