package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// sharedDirectories are used if the cluster's user cannot enter the intended directory; the
// first that exists.
var sharedDirectories = []string{"/var/lib", "/var/tmp"}

// ClusterDir returns the root for the cluster of dir, an existing directory given by its
// absolute path. The root is a directory in dir. If Postgres must run as a user who
// cannot enter dir, such as one below root's home, it is a shared directory whose name
// is derived from dir, so that a later call finds it again.
func ClusterDir(dir string) (string, error) {
	root := filepath.Join(dir, "postgres")
	owner, err := ownerOf(root)
	if err != nil {
		return "", err
	}
	if owner.credential == nil || owner.CanEnter(dir) {
		return root, nil
	}
	for _, shared := range sharedDirectories {
		if owner.CanEnter(shared) {
			return clusterDirFor(shared, dir), nil
		}
	}
	return "", fmt.Errorf("the user %s, who runs Postgres, can enter neither %s nor any of %v", owner.Name, dir, sharedDirectories)
}

func clusterDirFor(shared, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(shared, "millwright-dev-"+hex.EncodeToString(sum[:6]))
}

// Discard removes a cluster and its data, if they exist.
func Discard(ctx context.Context, root string) error {
	if exists(root) {
		if err := reclaim(ctx, dataDir(root)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(root); err != nil {
		return fmt.Errorf("cannot remove the data of an earlier run: %w", err)
	}
	return nil
}
