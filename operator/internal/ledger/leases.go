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

// LeasesPrefix holds two objects for every lease of the run: its acquisition and its end.
const LeasesPrefix = "leases/"

// Node names have no slash. A pod with write access below attempts/, possibly as a later part of a key, must not be able to forge a lease.
var (
	leaseTakenKey = regexp.MustCompile(`^leases/([^/]+)-([0-9]+)\.json$`)
	leaseEndKey   = regexp.MustCompile(`^leases/([^/]+)-([0-9]+)\.end\.json$`)
)

// LeaseTakenKey returns the key of the record of a lease.
func LeaseTakenKey(lease record.Lease) string {
	return fmt.Sprintf("leases/%s-%d.json", lease.Node, lease.Token)
}

// LeaseEndKey returns the key of the record of its end.
func LeaseEndKey(lease record.Lease) string {
	return fmt.Sprintf("leases/%s-%d.end.json", lease.Node, lease.Token)
}

// LastToken returns the highest token that the run ever had for a node; 0 without one.
func LastToken(ctx context.Context, s store.Store, node string) (last int64, err error) {
	// Page by page, because anyone with write access to the ledger may write any number of names.
	err = store.EachKey(ctx, s, LeasesPrefix, func(key string) {
		match := leaseTakenKey.FindStringSubmatch(key)
		if match == nil || match[1] != node {
			return
		}
		// Lease objects count in 32 bits (leaseTransitions). A token without a successor is forged.
		if token, err := strconv.ParseInt(match[2], 10, 32); err == nil && token < math.MaxInt32 {
			last = max(last, token)
		}
	})
	return last, err
}

// ReadLeases reads the records of the run's leases.
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
