package storeusers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/store"
)

// minSecretKey is the minimal length of a secret key in MinIO.
const minSecretKey = 8

// Done lists the changes that Apply made in the store.
type Done struct {
	Users   []string `json:"users"`
	Removed []string `json:"removed"`
}

// Read reads the secret keys of users from a mounted Secret: one file each, named after the user.
func Read(folder string) (map[string]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	users := map[string]string{}
	for _, entry := range entries {
		// Kubernetes stores the versions of a mounted Secret beside the files, in folders with names that begin with two dots.
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		key := strings.TrimSpace(string(raw))
		if len(key) < minSecretKey {
			return nil, fmt.Errorf("%s: the secret key has %d characters: write at least %d", filepath.Join(folder, entry.Name()), len(key),
				minSecretKey)
		}
		users[entry.Name()] = key
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("%s has no files: write the secret key of every user into one named after the user", folder)
	}
	return users, nil
}

// Apply creates these users with their secret keys and policies in the store of a ledger's URL, and deletes all other users of ours, such
// as those of removed namespaces. The options hold the credentials of an administrator.
func Apply(ctx context.Context, rawURL string, options store.Options, users map[string]string) (Done, error) {
	admin, err := NewAdmin(rawURL, options)
	if err != nil {
		return Done{}, err
	}
	// All policies are built before the first write, so that an invalid name changes nothing.
	policies := map[string][]byte{}
	for name := range users {
		if policies[name], err = Policy(admin.bucket, admin.under, name); err != nil {
			return Done{}, err
		}
	}
	done := Done{Users: []string{}, Removed: []string{}}
	for name, secretKey := range users {
		access := AccessKey(name)
		if admin.replaced(ctx, access, secretKey) {
			// Sessions made with the previous key end only with their user.
			if err := admin.remove(ctx, access); err != nil {
				return Done{}, err
			}
		}
		if err := admin.putUser(ctx, access, secretKey); err != nil {
			return Done{}, err
		}
		if err := admin.putPolicy(ctx, access, policies[name]); err != nil {
			return Done{}, err
		}
		done.Users = append(done.Users, access)
	}
	there, err := admin.policies(ctx)
	if err != nil {
		return Done{}, err
	}
	for _, access := range there {
		name, ours := strings.CutPrefix(access, prefix)
		if _, wanted := users[name]; !ours || wanted {
			continue
		}
		if err := admin.remove(ctx, access); err != nil {
			return Done{}, err
		}
		done.Removed = append(done.Removed, access)
	}
	slices.Sort(done.Users)
	slices.Sort(done.Removed)
	return done, nil
}
